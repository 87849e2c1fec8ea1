"""Turns proto3 source text into message classes, without protoc and without generated code.

Code that protoc generates is tied to the protobuf version it was generated for; descriptors that
are built at import work with every version. Understood is what our schemas use: messages, nested
messages, enums, oneofs, maps with string keys, `repeated`, and imports.
"""

import re
from collections.abc import Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.internal import builder

_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    name: getattr(_FIELD, f"TYPE_{name.upper()}")
    for name in "double float int32 int64 uint32 uint64 sint64 bool string bytes".split()
}
_TOKEN = re.compile(r'\s+|//[^\n]*|("[^"]*"|[\w.]+|[{}<>=;,])')


def define(
    module: dict[str, Any], name: str, package: str, source: str, imports: Sequence[str] = ()
) -> None:
    """Defines the messages of `source` in `module`, a module's `globals()`.

    Args:
      module: Receives `DESCRIPTOR` and one class per top-level message.
      name: The file's unique name in protobuf's default pool, such as "gear_reverb/cc/x.proto".
      package: Package of the messages; types of imported files are written out in full.
      source: Messages and enums, in proto3 syntax.
      imports: Names of files already in the pool.

    Raises:
      SyntaxError: If `source` is not in the subset understood.
    """
    file = descriptor_pb2.FileDescriptorProto(
        name=name, package=package, syntax="proto3", dependency=imports
    )
    _Parser(source, file).parse()
    descriptor = descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
    module["DESCRIPTOR"] = descriptor
    builder.BuildMessageAndEnumDescriptors(descriptor, module)
    builder.BuildTopDescriptorsAndMessages(descriptor, module["__name__"], module)


class _Parser:
    """Recursive descent over the tokens of one file."""

    def __init__(self, source: str, file: descriptor_pb2.FileDescriptorProto) -> None:
        self._tokens = [m.group(1) for m in _TOKEN.finditer(source) if m.group(1)]
        self._tokens.reverse()
        self._file = file
        self._scope: list[str] = []
        self._enums: set[str] = set(re.findall(r"\benum\s+(\w+)", source))

    def parse(self) -> None:
        while self._tokens:
            kind = self._tokens.pop()
            if kind == "message":
                self._message(self._file.message_type.add())
            elif kind == "enum":
                self._enum(self._file.enum_type.add())
            else:
                raise SyntaxError(f"{self._file.name}: unexpected {kind!r}")

    def _expect(self, token: str) -> None:
        got = self._tokens.pop()
        if got != token:
            raise SyntaxError(f"{self._file.name}: expected {token!r}, got {got!r}")

    def _message(self, message: descriptor_pb2.DescriptorProto) -> None:
        message.name = self._tokens.pop()
        self._scope.append(message.name)
        self._expect("{")
        while (token := self._tokens.pop()) != "}":
            if token == "message":
                self._message(message.nested_type.add())
            elif token == "enum":
                self._enum(message.enum_type.add())
            elif token == "oneof":
                self._oneof(message)
            elif token == "map":
                self._map(message)
            elif token == "repeated":
                self._field(message, self._tokens.pop()).label = _FIELD.LABEL_REPEATED
            else:
                self._field(message, token)
        self._scope.pop()

    def _enum(self, enum: descriptor_pb2.EnumDescriptorProto) -> None:
        enum.name = self._tokens.pop()
        self._expect("{")
        while (name := self._tokens.pop()) != "}":
            self._expect("=")
            enum.value.add(name=name, number=int(self._tokens.pop()))
            self._expect(";")

    def _oneof(self, message: descriptor_pb2.DescriptorProto) -> None:
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=self._tokens.pop())
        self._expect("{")
        while (token := self._tokens.pop()) != "}":
            self._field(message, token).oneof_index = index

    def _map(self, message: descriptor_pb2.DescriptorProto) -> None:
        self._expect("<")
        self._expect("string")
        self._expect(",")
        value_type = self._tokens.pop()
        self._expect(">")
        field = self._field(message, "string")
        entry = message.nested_type.add(
            name="".join(part.capitalize() for part in field.name.split("_")) + "Entry"
        )
        entry.options.map_entry = True
        self._set_type(entry.field.add(name="key", number=1, label=_FIELD.LABEL_OPTIONAL), "string")
        self._set_type(
            entry.field.add(name="value", number=2, label=_FIELD.LABEL_OPTIONAL), value_type
        )
        field.label = _FIELD.LABEL_REPEATED
        field.type = _FIELD.TYPE_MESSAGE
        field.type_name = "." + ".".join([self._file.package, *self._scope, entry.name])

    def _field(self, message: descriptor_pb2.DescriptorProto, type_name: str) -> _FIELD:
        field = message.field.add(name=self._tokens.pop(), label=_FIELD.LABEL_OPTIONAL)
        self._expect("=")
        field.number = int(self._tokens.pop())
        self._expect(";")
        self._set_type(field, type_name)
        return field

    def _set_type(self, field: _FIELD, type_name: str) -> None:
        if type_name in _SCALARS:
            field.type = _SCALARS[type_name]
            return
        is_enum = type_name.rpartition(".")[2] in self._enums
        field.type = _FIELD.TYPE_ENUM if is_enum else _FIELD.TYPE_MESSAGE
        field.type_name = type_name  # Resolved by the pool, innermost scope first.
