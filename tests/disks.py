"""What tests do with a disk that has little room: the fixture `small_disk` mounts one."""

import subprocess


def grow(disk, size):
    """More room for one that is mounted."""
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)


def raised_by(act):
    """The error of the system that comes of something, if one does."""
    try:
        act()
    except OSError as error:
        return error
    return None
