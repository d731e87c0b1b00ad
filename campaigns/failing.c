/* The n-th write below a folder fails: for LD_PRELOAD, armed by a call in the process that is to suffer.
 *
 * Counted are all calls that can fail for want of room, or for a broken disk: write and its kin, ftruncate, fsync, fallocate,
 * rename, link, mkdir, and open for writing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[4096];
static size_t length;
static long calls, target;
static int armed, failure, persists, part;

/* error: what errno says. lasts: also all calls after the n-th. halves: the n-th write takes one half and says so; with an
 * error that lasts, those after it fail. */
void failing_arm(const char *path, long n, int error, int lasts, int halves) {
    snprintf(folder, sizeof folder, "%s", path);
    length = strlen(folder);
    calls = 0, target = n, failure = error, persists = lasts, part = halves;
    armed = n > 0;
}

long failing_calls(void) { return calls; }

static int below(const char *path) {
    char whole[8192];
    if (path == NULL) return 0;
    if (path[0] != '/') {
        char here[4096];
        if (getcwd(here, sizeof here) == NULL) return 0;
        snprintf(whole, sizeof whole, "%s/%s", here, path);
        path = whole;
    }
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int below_descriptor(int descriptor) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return below(path);
}

static int below_at(int base, const char *path) {
    if (path == NULL || path[0] == '/' || base == AT_FDCWD) return below(path);
    return below_descriptor(base);
}

/* 0: goes on as always. 1: fails. 2: takes a part. */
static int verdict(int is_write) {
    long now = __sync_add_and_fetch(&calls, 1);
    if (now < target || (now > target && !persists)) return 0;
    if (part && (now == target || !failure)) return is_write ? 2 : 0;
    errno = failure;
    return 1;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);

static size_t half(size_t count) { return count > 1 ? count / 2 : count; }

ssize_t write(int fd, const void *buffer, size_t count) {
    REAL(write)
    if (!armed || !below_descriptor(fd)) return real(fd, buffer, count);
    int what = verdict(1);
    return what == 1 ? -1 : real(fd, buffer, what == 2 ? half(count) : count);
}

#define PWRITE(name, offset_t) \
    ssize_t name(int fd, const void *buffer, size_t count, offset_t place) { \
        REAL(name) \
        if (!armed || !below_descriptor(fd)) return real(fd, buffer, count, place); \
        int what = verdict(1); \
        return what == 1 ? -1 : real(fd, buffer, what == 2 ? half(count) : count, place); \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev)
    if (!armed || !below_descriptor(fd)) return real(fd, parts, count);
    int what = verdict(1);
    if (what == 2 && count > 0) return write(fd, parts[0].iov_base, half(parts[0].iov_len));
    return what == 1 ? -1 : real(fd, parts, count);
}

#define SIMPLE(result, name, parameters, arguments, inside) \
    result name parameters { \
        REAL(name) \
        if (armed && (inside) && verdict(0) == 1) return -1; \
        return real arguments; \
    }
SIMPLE(ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t place), (fd, parts, count, place), below_descriptor(fd))
SIMPLE(ssize_t, pwritev64, (int fd, const struct iovec *parts, int count, off64_t place), (fd, parts, count, place), below_descriptor(fd))
SIMPLE(int, ftruncate, (int fd, off_t size), (fd, size), below_descriptor(fd))
SIMPLE(int, ftruncate64, (int fd, off64_t size), (fd, size), below_descriptor(fd))
SIMPLE(int, fsync, (int fd), (fd), below_descriptor(fd))
SIMPLE(int, fdatasync, (int fd), (fd), below_descriptor(fd))
SIMPLE(int, fallocate, (int fd, int mode, off_t place, off_t size), (fd, mode, place, size), below_descriptor(fd))
SIMPLE(int, fallocate64, (int fd, int mode, off64_t place, off64_t size), (fd, mode, place, size), below_descriptor(fd))
SIMPLE(int, truncate, (const char *path, off_t size), (path, size), below(path))
SIMPLE(int, truncate64, (const char *path, off64_t size), (path, size), below(path))
SIMPLE(int, rename, (const char *from, const char *to), (from, to), below(to))
SIMPLE(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), below_at(b, to))
SIMPLE(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags), below_at(b, to))
SIMPLE(int, link, (const char *from, const char *to), (from, to), below(to))
SIMPLE(int, linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags), below_at(b, to))
SIMPLE(int, mkdir, (const char *path, mode_t mode), (path, mode), below(path))
SIMPLE(int, mkdirat, (int base, const char *path, mode_t mode), (base, path, mode), below_at(base, path))

#define ALLOCATE(name, offset_t) /* which tells its error by what it returns */ \
    int name(int fd, offset_t place, offset_t size) { \
        REAL(name) \
        if (armed && below_descriptor(fd) && verdict(0) == 1) return failure; \
        return real(fd, place, size); \
    }
ALLOCATE(posix_fallocate, off_t)
ALLOCATE(posix_fallocate64, off64_t)

#define WRITES(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND))
#define MODE \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags); \
        mode = va_arg(more, mode_t); \
        va_end(more); \
    }
#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name) \
        MODE if (armed && WRITES(flags) && below(path) && verdict(0) == 1) return -1; \
        return real(path, flags, mode); \
    }
#define OPENAT(name) \
    int name(int base, const char *path, int flags, ...) { \
        REAL(name) \
        MODE if (armed && WRITES(flags) && below_at(base, path) && verdict(0) == 1) return -1; \
        return real(base, path, flags, mode); \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
