"""A server of chat completions over a Unix socket or a port, as one that loads weights behaves.

`fake_server.py (--uds SOCKET | --port PORT) --starts FILE [--fail TEXT] [--refuse TEXT]`:
each start is a line of FILE. A question `die N` kills a server that is no later than the Nth start,
`hang N` stops it, and `slow` is never answered. With `--until FILE`, a start lasts until FILE is
there. `--answers FILE` is JSON with the answers to some questions.
"""

import argparse
import json
import os
import signal
import socketserver
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--uds")
parser.add_argument("--port", type=int)
parser.add_argument("--starts", type=Path, required=True)
parser.add_argument("--fail", default="")
parser.add_argument("--fail-from", type=int, default=1)
parser.add_argument("--refuse", default="")
parser.add_argument("--refuse-with", type=int, default=400)
parser.add_argument("--until", type=Path)
parser.add_argument("--no-system", action="store_true")
parser.add_argument("--answers", type=Path)
options = parser.parse_args()
ANSWERS = json.loads(options.answers.read_text()) if options.answers else {}

with options.starts.open("a") as file:
    file.write("start\n")
START = len(options.starts.read_text().splitlines())


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        question = asked["messages"][-1]["content"]
        if question.startswith("die") and int(question.split()[1]) >= START:
            os._exit(7)
        if question.startswith("hang") and int(question.split()[1]) >= START:
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(600)  # this thread may run on for a moment
        if question == "slow":
            time.sleep(600)
        if options.refuse:
            self.answer(options.refuse_with, {"error": {"message": options.refuse}})
        elif options.no_system and asked["messages"][0]["role"] == "system":
            self.answer(400, {"error": {"message": "System role not supported"}})
        elif question == "repeat":
            said = json.dumps({name: asked[name] for name in asked if name != "model"})
            message = {"role": "assistant", "content": said}
            self.answer(200, {"choices": [{"message": message, "finish_reason": "stop"}]})
        else:
            said = f"{asked['model']}, start {START}, {self.headers['authorization']}"
            message = {"role": "assistant", "content": ANSWERS.get(question, said)}
            self.answer(200, {"choices": [{"message": message, "finish_reason": "stop"}]})

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def address_string(self):
        return "socket"

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 512  # a socket refuses whoever finds no place, and does not let them wait


print("(Worker pid=5) INFO 11-20 20:57:13 [loader.py:501] Loading weights", flush=True)
while options.until and not options.until.exists():
    time.sleep(0.01)
if options.fail and options.fail_from <= START:
    print(f"(EngineCore pid=4) ERROR 11-20 20:57:14 [core.py:9] {options.fail}", flush=True)
    print("RuntimeError: Engine core failed. See root cause above.", flush=True)
    sys.exit(1)
if options.uds:
    serving = Server(options.uds, Handler)
else:
    serving = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
with serving as server:
    print("Application startup complete.", flush=True)
    server.serve_forever()
