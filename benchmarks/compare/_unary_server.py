"""A gRPC server (grpcio) with one empty unary method: _unary_server.py. Says its port."""

from concurrent import futures

import _process
import grpc

METHOD = "/benchmark.Empty/Call"


def main() -> None:
    _process.claim_stdout()
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: b"")
    service, method = METHOD.strip("/").split("/")
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, {method: handler}),)
    )
    port = server.add_insecure_port("localhost:0")
    server.start()
    _process.answer(lambda request: None, ready=port)


if __name__ == "__main__":
    main()
