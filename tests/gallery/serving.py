"""A real Milvus server on this machine until its input ends: `python serving.py FOLDER`; tells where it listens."""

import socket
import sys

from milvus import MilvusServer

if __name__ == "__main__":
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    server = MilvusServer(wait_for_started=True)
    server.set_base_dir(sys.argv[1])
    server.listen_port = port
    server.start()
    print(f"http://127.0.0.1:{server.listen_port}", flush=True)
    sys.stdin.read()
    server.stop()
