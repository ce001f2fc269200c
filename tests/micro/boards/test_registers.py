"""Clock trees and pins of real boards: the steps run on a model of the chip's registers.

The model is written from the reference manuals: what a ready bit waits for, and which frequencies
the fields stand for.  A rate that the description states and the registers do not give is an error
here, as is a wait for what nothing has switched on.
"""

import binascii
import struct

import pytest

from slipway.errors import SlipwayError
from slipway.micro.baremetal import board_config, checked_boot_block
from slipway.micro.board import board_names, board_toml, find_board, parse_step

MHZ = 1_000_000


class Chip:
    """Registers with what they hold after reset, and status bits that follow control bits."""

    def __init__(self, reset, follow):
        self.words, self.follow = dict(reset), follow

    def read(self, address):
        word = self.words.get(address, 0)
        for at, rule in self.follow.get(address, ()):
            word = (word & ~at) | (rule(self.words) & at)
        return word

    def run(self, steps):
        for step in steps:
            word = self.read(step.address)
            match step.kind:
                case "write":
                    self.words[step.address] = step.value
                case "set":
                    self.words[step.address] = word | step.mask
                case "clear":
                    self.words[step.address] = word & ~step.mask
                case "field":
                    self.words[step.address] = (word & ~step.mask) | step.value
                case "copy":
                    self.words[step.address] = self.read(step.value)
                case "trim":
                    for i in range(step.value):
                        address, trimmed = (self.read(step.address + 8 * i + 4 * j) for j in (0, 1))
                        if address == 0xFFFFFFFF:
                            break
                        self.words[address] = trimmed
                case "call":
                    self.call(step)
                case "wait":
                    assert word & step.mask == step.value, f"{step}: it would wait for ever"

    def call(self, step):
        raise AssertionError(f"{step}: this chip's ROM has no functions that a board calls")


def bits(word, low, count):
    return word >> low & ((1 << count) - 1)


def when(address, mask, ready):
    """A status bit that is set while a control bit is."""
    return ready, lambda w: ready if w.get(address, 0) & mask else 0


def prescaler(code, first):
    """Dividers of buses: below `first` none, then 2, 4, 8, 16."""
    return 1 if code < first else 2 << (code - first)


RCC = 0x40023800
F4 = Chip(
    {RCC: 0x83, RCC + 4: 0x24003010, 0x40007000: 0x8000},
    {
        RCC: [when(RCC, 1 << 24, 1 << 25)],
        RCC + 8: [(0xC, lambda w: bits(w.get(RCC + 8, 0), 0, 2) << 2)],
        0x40007004: [
            when(0x40007000, 1 << 16, 1 << 16),
            (1 << 17, lambda w: w.get(0x40007000, 0) & 1 << 17),
        ],
    },
)


def stm32f4(chip, bus, wait_states, over_drive):
    pll, config = chip.read(RCC + 4), chip.read(RCC + 8)
    assert bits(config, 2, 2) == 2
    assert not bits(pll, 22, 1)  # HSI
    vco_in = 16 * MHZ // bits(pll, 0, 6)
    assert MHZ <= vco_in <= 2 * MHZ
    vco = vco_in * bits(pll, 6, 9)
    assert 100 * MHZ <= vco <= 432 * MHZ
    clock = vco // (2, 4, 6, 8)[bits(pll, 16, 2)]
    assert bits(chip.read(0x40023C00), 0, 4) == wait_states
    assert bool(chip.read(0x40007004) & 1 << 17) == over_drive
    apb1 = clock // prescaler(bits(config, 10, 3), 4)
    apb2 = clock // prescaler(bits(config, 13, 3), 4)
    assert apb1 <= 54 * MHZ
    assert apb2 <= 108 * MHZ
    return clock, (apb1, apb2)[bus - 1]


def stm32f1(chip):
    config = chip.read(0x40021004)
    assert bits(config, 2, 2) == 2
    assert not bits(config, 16, 1)  # HSI / 2
    clock = 8 * MHZ // 2 * (bits(config, 18, 4) + 2)
    assert prescaler(bits(config, 4, 4), 8) == prescaler(bits(config, 11, 3), 4) == 1
    return clock, clock


F1 = Chip(
    {0x40021000: 0x83, 0x40010804: 0x44444444},
    {
        0x40021000: [when(0x40021000, 1 << 24, 1 << 25)],
        0x40021004: [(0xC, lambda w: bits(w.get(0x40021004, 0), 0, 2) << 2)],
    },
)
H7 = 0x58024400
H743 = Chip(
    {H7: 0x25, H7 + 0x28: 0x02020200, H7 + 0x2C: 0x01FF0000, H7 + 0x30: 0x01010280,
     0x5802480C: 0x6, 0x58024818: 0x4000},
    {
        H7: [when(H7, 1 << 24, 1 << 25)],
        H7 + 0x10: [(0x38, lambda w: bits(w.get(H7 + 0x10, 0), 0, 3) << 3)],
        0x58024804: [(1 << 13, lambda w: 1 << 13 if w[0x5802480C] & 7 == 2 else 0)],
        0x58024818: [(1 << 13, lambda w: 1 << 13)],
    },
)  # fmt: skip


def stm32h743(chip):
    assert bits(chip.read(H7 + 0x10), 3, 3) == 3
    source, config, divider = (chip.read(H7 + o) for o in (0x28, 0x2C, 0x30))
    assert bits(source, 0, 2) == 0
    vco_in = 64 * MHZ // bits(source, 4, 6)
    assert bits(config, 2, 2) == 3  # 8 to 16 MHz
    assert 8 * MHZ <= vco_in <= 16 * MHZ
    assert not bits(config, 1, 1)  # the wide range
    assert bits(config, 16, 1)  # DIVP1EN
    vco = vco_in * (bits(divider, 0, 9) + 1)
    assert 192 * MHZ <= vco <= 836 * MHZ
    clock = vco // (bits(divider, 9, 7) + 1)
    assert bits(chip.read(0x58024818), 14, 2) == 3  # voltage scale 1, which 400 MHz needs
    domain = chip.read(H7 + 0x18)
    assert prescaler(bits(domain, 8, 4), 8) == 1
    axi = clock // prescaler(bits(domain, 0, 4), 8)
    assert axi <= 210 * MHZ
    assert bits(chip.read(0x52002000), 0, 4) == 2
    return clock, axi // prescaler(bits(chip.read(H7 + 0x1C), 4, 3), 4)


L4 = 0x40021000
L4R5 = Chip(
    {L4: 0x63, L4 + 0xC: 0x1000, 0x40007080: 0x100},
    {
        L4: [when(L4, 1 << 8, 1 << 10), when(L4, 1 << 24, 1 << 25)],
        L4 + 8: [(0xC, lambda w: bits(w.get(L4 + 8, 0), 0, 2) << 2)],
    },
)


def stm32l4(chip):
    pll, config = chip.read(L4 + 0xC), chip.read(L4 + 8)
    assert bits(config, 2, 2) == 3
    assert bits(pll, 0, 2) == 2  # HSI16
    assert bits(pll, 24, 1)
    vco = 16 * MHZ // (bits(pll, 4, 4) + 1) * bits(pll, 8, 7)
    assert 64 * MHZ <= vco <= 344 * MHZ
    clock = vco // (2 * (bits(pll, 25, 2) + 1)) // prescaler(bits(config, 4, 4), 8)
    assert bits(chip.read(0x40022000), 0, 4) == 5
    assert not chip.read(0x40007080) & 0x100  # boosted
    assert chip.read(0x40007004) & 0x200  # port G is supplied
    return clock, clock // prescaler(bits(config, 8, 3), 4)


def raspberry(chip, crystal, pll, clocks):
    assert chip.words[crystal] == 0xFABAA0
    assert chip.words[crystal + 0xC] * 256 >= 12_000  # a millisecond of 12 MHz
    assert bits(chip.read(pll), 0, 6) == 1
    vco = 12 * MHZ * chip.read(pll + 8)
    assert 750 * MHZ <= vco <= 1600 * MHZ
    post = chip.read(pll + 0xC)
    assert bits(post, 16, 3) >= bits(post, 12, 3)
    assert not chip.read(pll + 4) & 0x29  # everything on that the output needs
    assert chip.read(clocks + 0x48) & 0x8E0 == 0x800
    clock = vco // bits(post, 16, 3) // bits(post, 12, 3)
    return clock, clock


U5, U5_VOLTAGE = 0x46020C00, 0x4602080C
U575 = Chip(
    {U5: 0x35, 0x42020000: 0xABFFFFFF},
    {
        U5: [when(U5, 1 << 8, 1 << 10), when(U5, 1 << 24, 1 << 25)],
        U5 + 0x1C: [(0xC, lambda w: bits(w.get(U5 + 0x1C, 0), 0, 2) << 2)],
        # The booster runs on PLL1's source: it gets ready where that was chosen before.
        U5_VOLTAGE: [
            (1 << 15, lambda w: 1 << 15 if w.get(U5 + 0x94, 0) & 4 else 0),
            (1 << 14, lambda w: bits(w.get(U5_VOLTAGE, 0), 18, 1)
             and (1 << 14 if bits(w.get(U5 + 0x28, 0), 0, 2) else 0)),
        ],
    },
)  # fmt: skip


def stm32u5(chip):
    pll, divider = chip.read(U5 + 0x28), chip.read(U5 + 0x34)
    assert bits(chip.read(U5 + 0x1C), 2, 2) == 3
    assert bits(pll, 0, 2) == 2  # HSI16
    assert bits(pll, 18, 1)  # PLL1REN
    boost = 2 * bits(pll, 12, 4) or 1
    assert 4 * MHZ <= 16 * MHZ // boost <= 16 * MHZ
    given = 16 * MHZ // (bits(pll, 8, 4) + 1)
    assert (bits(pll, 2, 2) == 3) == (given > 8 * MHZ)
    vco = given * (bits(divider, 0, 9) + 1)
    assert 128 * MHZ <= vco <= 544 * MHZ
    buses = chip.read(U5 + 0x20)
    clock = vco // (bits(divider, 24, 7) + 1) // prescaler(bits(buses, 0, 4), 8)
    assert clock <= 160 * MHZ
    assert bits(chip.read(U5_VOLTAGE), 16, 3) == 7  # range 1, boosted
    assert bits(chip.read(0x40022000), 0, 4) == 4
    assert bits(chip.read(0x42020000), 26, 2) == 2  # the debugger's pins are as after reset
    return clock, clock // prescaler(bits(buses, 8, 3), 4)


def raspberry_chip(resets, all_blocks, crystal, pll, clocks):
    one = 1 << 31
    return Chip(
        {resets: all_blocks, pll: 1, pll + 4: 0x2D, clocks + 0x48: 0},
        {
            resets + 8: [(0xFFFFFFFF, lambda w: ~w[resets] & all_blocks)],
            crystal + 4: [(one, lambda w: one if w.get(crystal) == 0xFABAA0 else 0)],
            clocks + 0x38: [(15, lambda w: 1 << bits(w.get(clocks + 0x30, 0), 0, 2))],
            clocks + 0x44: [(3, lambda w: 1 << bits(w.get(clocks + 0x3C, 0), 0, 1))],
            pll: [(one, lambda w: 0 if w[pll + 4] & 0x21 else one)],
        },
    )


IMX, IMX_PLL, IMX_POWER = 0x400FC000, 0x400D8000, 0x40080000
RT1062 = Chip(
    {IMX + 0x10: 1, IMX + 0x14: 0x000A8200, IMX + 0x18: 0x75AE8304, IMX + 0x24: 0x06490B00,
     IMX_PLL: 0x80002042, IMX_POWER + 0xC: 0x0E},
    {
        # The voltage is there once DCDC has its clock, the PLL locked while it is on.
        IMX_POWER: [(1 << 31, lambda w: 1 << 31 if w.get(IMX + 0x80, 0) & 0xC0 else 0)],
        IMX_PLL: [(1 << 31, lambda w: 1 << 31 if w[IMX_PLL] & 0x3000 == 0x2000 else 0)],
        IMX + 0x48: [(0xFFFFFFFF, lambda w: 0)],
    },
)  # fmt: skip


class TeensyChip(Chip):
    """The ARM PLL may change only while the core runs from another clock, at enough voltage."""

    def run(self, steps):
        for step in steps:
            if step.address == IMX_PLL and step.kind == "write":
                assert self.words[IMX + 0x14] & 1 << 25, "the PLL changes under the core"
                assert self.words[IMX_POWER + 0xC] & 0x1F >= 18, "1.25 V come first"
            super().run([step])


def imxrt(chip):
    assert not chip.read(IMX + 0x14) & 1 << 25  # PERIPH_CLK_SEL: from the PLL again
    assert bits(chip.read(IMX + 0x18), 18, 2) == 3  # PRE_PERIPH_CLK_SEL: divided PLL1
    pll = chip.read(IMX_PLL)
    assert not pll & 1 << 16  # BYPASS
    assert 54 <= bits(pll, 0, 7) <= 108
    core = 24 * MHZ * bits(pll, 0, 7) // 2 // (bits(chip.read(IMX + 0x10), 0, 3) + 1)
    core //= bits(chip.read(IMX + 0x14), 10, 3) + 1
    assert core // (bits(chip.read(IMX + 0x14), 8, 2) + 1) <= 150 * MHZ  # IPG
    assert 800 + 25 * bits(chip.read(IMX_POWER + 0xC), 0, 5) == 1250
    serial = chip.read(IMX + 0x24)
    assert bits(serial, 6, 1)  # the crystal
    return core, 24 * MHZ // (bits(serial, 0, 6) + 1)


C3_CPU, C3_SYSTEM, C3_BUS, C3_POWER = 0x600C0008, 0x600C0058, 0x6000E040, 0x60008000


C3_KEYS = {0x60008090: (0x600080A8, 0x50D83AA1), 0x600080AC: (0x600080B0, 0x8F1D312A),
           0x6001F048: (0x6001F064, 0x50D83AA1)}  # fmt: skip


class EspressifChip(Chip):
    """ESP32-C3: watchdogs behind keys, and a PLL whose registers functions of the ROM write."""

    def run(self, steps):
        self.analog = dict.fromkeys(range(11), 0)
        for step in steps:
            if step.address in C3_KEYS:
                at, key = C3_KEYS[step.address]
                assert self.words.get(at) == key, f"{step}: it is locked"
            super().run([step])

    def call(self, step):
        block, host, register, *others = (step.mask | step.value << 32).to_bytes(6, "little")
        assert (block, host) == (0x66, 0)
        assert not self.words[C3_POWER] & 0x540, "the PLL has no power yet"
        if step.address == 0x4000195C:
            self.analog[register] = others[0]
        else:
            assert step.address == 0x40001960
            high, low, value = others
            mask = (1 << (high - low + 1)) - 1
            assert value <= mask
            self.analog[register] = self.analog[register] & ~(mask << low) | value << low


C3 = EspressifChip(
    {C3_POWER: 0x1C00A540, 0x60008090: 0x80013214, 0x600080AC: 0x04B00000, 0x6001F048: 0x8004C000,
     0x6000E044: 0x20000, C3_BUS: 0x4, C3_CPU: 0xC, C3_SYSTEM: 1},
    {
        # Calibration is over only where it was started, and nothing holds the PLL.
        C3_BUS: [(1 << 24, lambda w: 1 << 24 if w[C3_BUS] & 12 == 8
                  and not w[0x6000E044] & 0x20000 else 0)],
    },
)  # fmt: skip


def esp32c3(chip):
    assert not chip.read(0x60008090) >> 31  # both watchdogs are off
    assert not chip.read(0x6001F048) >> 31
    assert chip.read(0x600080AC) >> 31  # the third feeds itself
    # The PLL's own registers: those of ESP-IDF for 480 MHz of a crystal of 40.
    assert chip.analog[4] == 0x6B
    assert (chip.analog[2], chip.analog[3], chip.analog[5]) == (0x50, 8, 0)
    assert (chip.analog[6], chip.analog[9]) == (0x63, 2)
    assert bits(chip.read(C3_SYSTEM), 10, 2) == 1
    assert bits(chip.read(C3_SYSTEM), 0, 10) == 0
    pll = 480 * MHZ if chip.read(C3_CPU) & 4 else 320 * MHZ
    divider = {480: (6, 3), 320: (4, 2)}[pll // MHZ][bits(chip.read(C3_CPU), 0, 2)]
    return pll // divider, 40 * MHZ


NRF53 = Chip(
    {0x50005558: 1, 0x00FF0300: 0x50004A00, 0x00FF0304: 7, 0x00FF0308: 0xFFFFFFFF,
     0x00FF8000: 0x50FA50FA, 0x00FF801C: 0x50FA50FA},
    {0x50005100: [(1, lambda w: w.get(0x50005000, 0) | w.get(0x50005100, 0))]},
)  # fmt: skip


def nrf5340(chip):
    assert chip.words[0x50004A00] == 7  # trimmed
    assert chip.words[0x50006544] == chip.words[0x5000654C] == 0x50FA50FA  # the debugger stays in
    core = 128 * MHZ >> bits(chip.read(0x50005558), 0, 2)
    return core, core


NRF = Chip(
    {}, {0x40000100: [(1, lambda w: w.get(0x40000000, 0) | w.get(0x40000100, 0))]}
)  # fmt: skip
RP2040 = (0x4000C000, 0x1FFFFFF, 0x40024000, 0x40028000, 0x40008000)
RP2350 = (0x40020000, 0x1FFFFFFF, 0x40048000, 0x40050000, 0x40010000)
CASES = {
    "nucleo-f446re": (F4, lambda c: stm32f4(c, 1, 5, True)),
    "netduinoplus2": (F4, lambda c: stm32f4(c, 2, 5, False)),
    "netduino2": (F4, lambda c: stm32f4(c, 2, 3, False)),
    "stm32f746": (F4, lambda c: stm32f4(c, 2, 7, True)),
    "stm32vldiscovery": (F1, stm32f1),
    "nucleo-h743zi": (H743, stm32h743),
    "nucleo-l4r5zi": (L4R5, stm32l4),
    "nucleo-u575zi": (U575, stm32u5),
    "rp2040": (raspberry_chip(*RP2040), lambda c: raspberry(c, *RP2040[2:])),
    "pico2": (raspberry_chip(*RP2350), lambda c: raspberry(c, *RP2350[2:])),
    "nrf52840": (NRF, lambda c: (64 * MHZ, 64 * MHZ)),
    "microbit-v2": (NRF, lambda c: (64 * MHZ, 64 * MHZ)),
    "nrf5340": (NRF53, nrf5340),
    "teensy41": (TeensyChip(RT1062.words, RT1062.follow), imxrt),
    "esp32c3": (C3, esp32c3),
    "microbit": (NRF, lambda c: (16 * MHZ, 16 * MHZ)),
}


@pytest.mark.parametrize("name", CASES)
def test_registers_give_the_clocks_that_the_description_states(name):
    board = find_board(name)
    model, clocks = CASES[name]
    chip = type(model)(model.words, model.follow)
    chip.run([*board.clock, *board.pins])
    core, serial = clocks(chip)
    assert core == board.clock_hz
    assert serial == (board.uart.clock_hz or board.clock_hz)
    if board.uart.kind.startswith("stm32"):  # the divider of its rate fits, within one percent
        divider = round(serial * board.uart.scale / 115200)
        assert 16 <= divider < 1 << (20 if board.uart.scale > 1 else 16)
        assert abs(serial * board.uart.scale / divider / 115200 - 1) < 0.01


def test_every_board_with_clocks_is_held_against_its_chip():
    assert {n for n in board_names() if find_board(n).clock} == set(CASES)
    for name in CASES:
        assert find_board(name).flash_tool


def test_serial_pins_are_switched_to_the_serial_line():
    """Alternate functions of the datasheets' tables: USART1 to 3 are 7, LPUART1 is 8."""
    for name, pins in {
        "nucleo-f446re": [(0x40020000, 2, 7), (0x40020000, 3, 7)],
        "netduinoplus2": [(0x40020000, 9, 7), (0x40020000, 10, 7)],
        "stm32f746": [(0x40020000, 9, 7), (0x40020400, 7, 7)],
        "nucleo-h743zi": [(0x58020C00, 8, 7), (0x58020C00, 9, 7)],
        "nucleo-l4r5zi": [(0x48001800, 7, 8), (0x48001800, 8, 8)],
        "nucleo-u575zi": [(0x42020000, 9, 7), (0x42020000, 10, 7)],
    }.items():
        model, _ = CASES[name]
        chip = Chip(model.words, model.follow)
        chip.run(find_board(name).pins)
        for port, pin, function in pins:
            assert bits(chip.read(port), 2 * pin, 2) == 2, (name, pin)
            table = port + 0x20 + 4 * (pin // 8)
            assert bits(chip.read(table), 4 * (pin % 8), 4) == function, (name, pin)


def test_boot_block_of_rp2040_ends_with_its_checksum():
    """The boot ROM computes the CRC-32 of Ethernet, not reflected: that of the reversed bits."""
    words = checked_boot_block(find_board("rp2040").boot_block)
    assert len(words) == 64
    mirrored = bytes(int(f"{b:08b}"[::-1], 2) for b in struct.pack("<63I", *words[:63]))
    reflected = binascii.crc32(mirrored) ^ 0xFFFFFFFF
    assert words[63] == int(f"{reflected:032b}"[::-1], 2)
    assert 'section(".boot2")' in board_config(find_board("rp2040"))


def test_descriptions_survive_being_written(tmp_path):
    for name in board_names():
        path = tmp_path / f"{name}.toml"
        board = find_board(name)
        path.write_text(board_toml(board))
        again = find_board(str(path))
        assert (again.clock, again.pins, again.uart) == (board.clock, board.pins, board.uart)
        assert (again.boot, again.boot_block) == (board.boot, board.boot_block)
        assert (again.timer, again.read_at) == (board.timer, board.read_at)


@pytest.mark.parametrize(
    "step",
    ["write 0x40000000", "poke 0x40000000 1", "set 0x40000001 1", "field 0x40000000 1 2",
     "wait 0x100000000 1 1", "", "set 0 1", "call 0x40000000", "call 0x40000000 256",
     "copy 0x40000000 2", "copy 0x40000000 0", "copy 0x40000000", "trim 0x40000000 0",
     "trim 0x40000000 257", "trim 0x40000002 1", "trim 0x40000000 1 1",
     "call 0 1", "call 0x40000000 1 2 3 4 5 6 7"],
)  # fmt: skip
def test_steps_that_are_none(step, tmp_path):
    with pytest.raises(ValueError, match="the step"):
        parse_step(step)
    path = tmp_path / "ours.toml"
    text = board_toml(find_board("netduino2"))
    path.write_text(text.replace("clock = [", f'clock = ["{step}", ', 1))
    with pytest.raises(SlipwayError, match=r"does not describe a board: .*the step"):
        find_board(str(path))
