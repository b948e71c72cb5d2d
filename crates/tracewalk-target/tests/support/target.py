"""The simulated chip with what it leaves out: an MTB that halts the processor, a TMC that writes to memory, an ITM that traces exceptions,
and a JTAG probe for OpenOCD (its `remote_bitbang`) in place of the probe for pyOCD.

    target.py SIMULATION [--jtag] ARGUMENTS-OF-THE-SIMULATION"""
import socket
import sys

SIMULATION = sys.argv.pop(1)
sys.path.insert(0, SIMULATION)
import chip as simulated
import probe
import replay
import target
import units


class Mtb(units.Mtb):
    """DDI 0486B, 3.2.3: with AUTOHALT, the processor halts when the position reaches the watermark."""

    def begin(self, resumed):
        super().begin(resumed)
        self.starts = self.starts or resumed

    def emit(self, events, insns):
        def packets(*run):
            found = packets_of(*run)
            if found and not self.starts: found[0] = (found[0][0], found[0][1] & ~1)
            self.starts = self.starts and not found
            return found
        units.encode.mtb = packets
        super().emit(events, insns)

    def is_full(self):
        position, mark = self.regs[0] & ~7, self.regs[8] & ~7 & (1 << self.width) - 1
        size = 1 << (self.regs[4] & 31) + 4
        return self.regs[8] & 2 and self.tracing() and (position - mark) % size < size // 4


packets_of = units.encode.mtb
Mtb.starts = True


class Core(replay.Core):
    def advance(self, n):
        mtbs = [u for u in self.chip.units if isinstance(u, Mtb) and u.regs[8] & 2]
        while n > 0 and mtbs and not self.halted and not self.ended:
            before = [u.is_full() for u in mtbs]
            super().advance(min(n, 2))
            n -= 2
            if self.halted:
                return True
            # An exception's packets need both events.
            if any(e[0] != 'i' for e in self.run.events[max(self.at - 1, 0):self.at + 2]):
                continue
            self.chip.split()
            if any(u.is_full() and not was for u, was in zip(mtbs, before)):
                self.halt('the MTB is full')
        return super().advance(n)


class Etr(units.Tmc):
    """DDI 0461B: pointers are addresses, and the size is a register."""

    def reset(self):
        super().reset()
        self.regs.update({4: 0, 0x110: 0, 0x118: 0xDEAD0000, 0x11C: 1, 0x14: 0, 0x18: 0})

    def get(self, off):
        if off == 0x04: return self.regs[4]
        if off == 0x0C: return int(self.full) | (4 if self.stopped or not self.regs[0x20] & 1 else 0)
        if off == 0xFC8: return 1 << 6 | 3 << 8
        if off == 0x14: return self.regs[0x14]
        return super().get(off)

    def put(self, off, v):
        if off in (4, 0x110, 0x118, 0x11C, 0x14, 0x18):
            if self.regs[0x20] & 1: self.note(f'{off:#x} written while enabled: ignored')
            else: self.regs[off] = v
        else: super().put(off, v)

    def ready(self):
        while self.regs[0x18] % self.width: self.store(0)

    def store(self, w):
        if self.regs[0x11C] or self.regs[0x110] & 0x82 != 2 or not self.regs[4]: return self.note('a word lost: no memory')
        self.chip.store_words(self.regs[0x18], [w])
        self.regs[0x18] += 4
        if self.regs[0x18] == self.regs[0x118] + 4 * self.regs[4]:
            self.regs[0x18], self.full = self.regs[0x118], True


class Dwt(units.Dwt):
    lock = 'soft'

    def get(self, off): return 0x40000000 | self.regs.get(0, 0) if off == 0 else super().get(off)


class Itm(units.Source):
    """DDI 0403E, C1.7: exceptions as DWT packets, if a sink is named in the chip's description."""
    cls, part, lock = 0xE, 1, 'soft'

    def reset(self):
        super().reset()
        self.active = [0]

    def put(self, off, v):
        self.chip.split()
        self.regs[off] = v
        if off == 0xE80 and not v & 1: self.drain()
        self.chip.update()

    def tracing(self):
        control, dwt = self.regs.get(0xE80, 0), self.chip.unit('dwt').regs.get(0, 0)
        return self.chip.trcena and control & 0xF == 0xF and control >> 16 & 0x7F and dwt & 0x10001 == 0x10001

    def drain(self):
        data, self.fifo = self.fifo, b''
        if data: self.chip.atb(self, self.was_id, data)

    def emit(self, events, insns):
        self.was_id = self.regs[0xE80] >> 16 & 0x7F
        out = b'\0\0\0\0\0\x80'
        packet = lambda number, what: bytes([0x0E, number & 0xFF, number >> 8 & 1 | what << 4])
        for event in events[1:]:
            if event[0] == 'x':
                self.active.append(event[1])
                out += packet(event[1], 1)
            elif event[0] == 'r':
                out += packet(self.active.pop() if len(self.active) > 1 else 0, 2) + packet(self.active[-1], 3)
        self.fifo += out


NEXT = {'reset': ('idle', 'reset'), 'idle': ('idle', 'select-dr'), 'select-dr': ('capture-dr', 'select-ir'), 'select-ir': ('capture-ir', 'reset')}
for r in ('dr', 'ir'):
    NEXT.update({f'capture-{r}': (f'shift-{r}', f'exit1-{r}'), f'shift-{r}': (f'shift-{r}', f'exit1-{r}'), f'exit1-{r}': (f'pause-{r}', f'update-{r}'),
                 f'pause-{r}': (f'pause-{r}', f'exit2-{r}'), f'exit2-{r}': (f'shift-{r}', f'update-{r}'), f'update-{r}': ('idle', 'select-dr')})


class Jtag:
    """A JTAG debug port (IHI 0031, B3) in front of the probe's access ports."""
    ABORT, DPACC, APACC, IDCODE = 8, 10, 11, 14

    def __init__(self, chip):
        self.dap, self.state, self.ir, self.shift, self.length = probe.Dap(chip), 'reset', self.IDCODE, 0, 32
        self.result, self.select, self.clock = 0, 0, 0

    def edge(self, tms, tdi):
        if self.state.startswith('shift'): self.shift = self.shift >> 1 | tdi << self.length - 1
        self.state = NEXT[self.state][tms]
        if self.state == 'reset': self.ir = self.IDCODE
        elif self.state == 'capture-ir': self.shift, self.length = 1, 4
        elif self.state == 'update-ir': self.ir = self.shift
        elif self.state == 'capture-dr':
            if self.ir == self.IDCODE: self.shift, self.length = 0x4BA00477, 32
            elif self.ir in (self.DPACC, self.APACC, self.ABORT): self.shift, self.length = self.result << 3 | 2, 35
            else: self.shift, self.length = 0, 1
        elif self.state == 'update-dr' and self.ir in (self.DPACC, self.APACC):
            self.access(self.shift & 1, self.shift >> 1 & 3, self.shift >> 3)

    def access(self, reads, register, value):
        at = self.select >> 24 << 24 | self.select & 0xF0 | register * 4
        try:
            if self.ir == self.APACC and reads: self.result = self.dap.read_ap(at) or 0
            elif self.ir == self.APACC: self.dap.write_ap(at, value)
            elif reads: self.result = self.dap.call('read_dp', [register * 4]) if register == 1 else 0
            elif register == 1:
                if value & 0x20: self.dap.sticky = False
                self.dap.call('write_dp', [4, value])
            elif register == 2: self.select = value
        except simulated.Fault: pass

    def serve(self, connection):
        while data := connection.recv(1 << 16):
            out = bytearray()
            for c in data:
                if 0x30 <= c < 0x38:
                    c -= 0x30
                    if c & 4 and not self.clock: self.edge(c >> 1 & 1, c & 1)
                    self.clock = c & 4
                elif c == 0x52: out.append(0x30 + (self.shift & 1 if self.state.startswith('shift') else 0))
            if out: connection.sendall(out)


def serve_jtag(chip, port):
    with socket.create_server(('127.0.0.1', port)) as listener:
        print(f'jtag 127.0.0.1:{listener.getsockname()[1]}', flush=True)
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            Jtag(chip).serve(connection)


# IHI 0029E, B2.3.4; here a plain register.
units.Etb.writable = units.Etb.writable | {0xFA4: 0xF}
units.KINDS.update(mtb=Mtb, etr=Etr, dwt=Dwt, itm=lambda chip, spec: Itm(chip, spec) if 'to' in spec else units.Itm(chip, spec))
simulated.Core = Core
if '--jtag' in sys.argv:
    sys.argv.remove('--jtag')
    probe.serve = serve_jtag
target.main()
