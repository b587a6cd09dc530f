# SPDX-License-Identifier: ISC
"""multipart/form-data read as Go reads it (mime/multipart), with its leniency: a body that ends between two parts, or
in the head of one, is complete."""
import email.message

READ = 1 << 18


class FormError(ValueError):
    """The body is no form, or ends in the middle of a part."""


def boundary_of(headers):
    """The boundary that a Content-Type names; FormError if it is no multipart one."""
    message = email.message.Message()
    message["Content-Type"] = headers.get("Content-Type", "")
    boundary = message.get_boundary()
    if message.get_content_maintype() != "multipart" or not boundary:
        raise FormError("request Content-Type isn't multipart/form-data")
    return boundary.encode()


class Part:
    """One part: its field's name, its file name or None, its bytes by read_chunk."""

    def __init__(self, form, head):
        message = email.message.Message()
        for line in head:
            name, _, value = line.decode("utf-8", "replace").partition(":")
            message[name.strip()] = value.strip()
        disposition = message.get("Content-Disposition", "")
        self.name = message.get_param("name", "", "Content-Disposition") if disposition else ""
        self.filename = message.get_filename()
        self.form, self.begun, self.ended = form, False, False

    async def read_chunk(self):
        """The next bytes, b"" at the end; FormError when the body ends within the part."""
        if self.ended:
            return b""
        try:
            size, self.ended = await self.form.body_size(not self.begun)
        except FormError:
            self.ended = True
            raise
        self.begun = True
        return self.form.take(size)

    async def read(self):
        data = bytearray()
        while chunk := await self.read_chunk():
            data += chunk
        return bytes(data)


class Form:
    """The parts of a body in their order. `read` gives the next bytes of it, b"" at its end."""

    def __init__(self, boundary, read):
        self.dash, self.newline, self.source = b"--" + boundary, b"\r\n", read
        self.buffer, self.at_end = bytearray(), False
        self.part = None

    async def _fill(self):
        """More bytes in the buffer; False at the end of the body."""
        if not self.at_end:
            data = await self.source()
            self.buffer += data
            self.at_end = not data
        return not self.at_end

    def take(self, size):
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data

    async def _line(self):
        """(a line with its end, is it whole)."""
        while b"\n" not in self.buffer:
            if not await self._fill():
                return self.take(len(self.buffer)), False
        return self.take(self.buffer.index(b"\n") + 1), True

    def _is_final(self, line):
        rest = line[len(self.dash) + 2:].lstrip(b" \t")
        return line.startswith(self.dash + b"--") and rest in (b"", self.newline)

    def _is_delimiter(self, line):
        rest = line[len(self.dash):].lstrip(b" \t")
        if not line.startswith(self.dash):
            return False
        if self.part is None and rest == b"\n":
            self.newline = b"\n"
        return rest == self.newline

    async def next(self):
        """The next Part, or None."""
        while self.part and await self.part.read_chunk():
            pass
        expected = False
        while True:
            line, whole = await self._line()
            if self._is_final(line):
                return None
            if not whole:
                raise FormError("multipart: NextPart: EOF")
            if self._is_delimiter(line):
                return await self._begin_part()
            if self.part and (expected or line != self.newline):
                raise FormError("multipart: unexpected line in Next()")
            expected = self.part is not None

    async def _begin_part(self):
        head = []
        while True:
            line, whole = await self._line()
            if not whole:
                return None
            if not line.strip():
                self.part = Part(self, head)
                return self.part
            head.append(line)

    async def body_size(self, first):
        """(bytes of the part that can be taken now, is that all of it)."""
        while True:
            if first and self.buffer.startswith(self.dash) and self._ends(len(self.dash)) is True:
                return 0, True
            size, verdict = self._scan()
            if verdict is True:
                return size, True
            if size and not (self.at_end and verdict is None):
                return size, False
            if not await self._fill() and self._scan() == (size, verdict):
                self.buffer.clear()
                raise FormError("unexpected EOF")

    def _scan(self):
        """(bytes before what is or may be a delimiter, True if it is one, None if that cannot be said yet)."""
        mark, start = self.newline + self.dash, 0
        while (found := self.buffer.find(mark, start)) >= 0:
            verdict = self._ends(found + len(mark))
            if verdict is not False:
                return found, verdict
            start = found + 1
        return (len(self.buffer), False) if self.at_end else (max(len(self.buffer) - len(mark), 0), None)

    def _ends(self, end):
        """Does a delimiter end here? None if the next bytes must say."""
        following = self.buffer[end:end + 2]
        if not following:
            return True if self.at_end else None
        if following[:1] in (b" ", b"\t", b"\r", b"\n") or following == b"--":
            return True
        return None if following == b"-" and not self.at_end else False
