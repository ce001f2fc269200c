/* Serial drivers of boards that no emulator has, run against models of their registers.
 *
 * The registers' page is forbidden: each access traps, the model says what is read before the
 * instruction goes on, and sees what was written after it (x86-64 Linux, a static program, so
 * that addresses fit 32 bits as on the chips).  Prints what came out and the rate.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "board.h"
#include "board_config.h"

uint32_t board_clock_hz = BOARD_CLOCK_HZ;
uint32_t board_uart_hz = BOARD_UART_HZ;

#define PAGE 4096u
#define START (BOARD_UART_BASE & ~(PAGE - 1u))
#define REG(offset) (*(uint32_t *)(uintptr_t)(BOARD_UART_BASE + (offset)))

static uint8_t coming[64], gone[1024];
static unsigned come, came, went, busy;
static double rate;

static void die(const char *why) {
  puts(why);
  fflush(stdout);
  _Exit(1);
}

static void send(uint32_t byte) {
  if (busy != 0u) {
    die("a byte was written before the last one had gone");
  }
  gone[went++] = (uint8_t)byte;
  busy = 3;
}

static uint32_t ready(void) { /* asking lets time pass */
  busy -= busy != 0u;
  return busy == 0u;
}

static uint32_t take(void) { return came < come ? coming[came++] : 0xEEu; }

#if defined(MODEL_lpuart)
static void before(uint32_t at) {
  if (at == 0x14) REG(at) = ready() << 23 | (uint32_t)(came < come) << 21 | (came == 5) << 19;
  if (at == 0x1C) REG(at) = take();
}
static void after(uint32_t at, uint32_t word) {
  if (at == 0x10) rate = (double)BOARD_UART_HZ / (((word >> 24 & 31) + 1) * (word & 0x1FFF));
  if (at == 0x18 && word != 0 && word != 0xC0000) die("transmitter and receiver are off");
  if (at == 0x1C) send(word & 0xFF);
}
#elif defined(MODEL_nrf_dma)
static int receiving;
static void arrive(void) {
  if (receiving && came < come) {
    if (REG(0x538) != 1) die("not one byte");
    *(uint8_t *)(uintptr_t)REG(0x534) = coming[came++];
    REG(0x110) = 1;
    receiving = 0;
  }
}
static void before(uint32_t at) {
  if (at == 0x110) arrive();
  if (at == 0x120 && ready()) REG(at) = went != 0;
}
static void after(uint32_t at, uint32_t word) {
  if ((at == 0 || at == 8) && REG(0x500) != 8) die("it is not enabled");
  if (at == 0 && word == 1) receiving = 1;
  if (at == 8 && word == 1) send(*(uint8_t *)(uintptr_t)REG(0x544));
  if (at == 0x524) rate = word * 16e6 / 4294967296.0;
}
#elif defined(MODEL_esp)
static uint32_t set, latched;
static unsigned queue;
static void before(uint32_t at) {
  if (at == 0x1C) {
    queue -= queue != 0 && ready();
    REG(at) = (come - came) | queue << 16;
  }
  if (at == 0) REG(at) = take();
  if (at == 0x80 && latched && --latched == 0) REG(at) &= 0x7FFFFFFFu;
}
static void after(uint32_t at, uint32_t word) {
  if (at == 0) {
    if (++queue > 128) die("the FIFO runs over");
    gone[went++] = (uint8_t)word;
  }
  if (at == 0x14) set = word;
  if (at == 0x78 && (word >> 20 & 3) != 3) die("not the crystal");
  if (at == 0x80 && word >> 31) latched = 4, rate = BOARD_UART_HZ / ((set & 0xFFF) + (set >> 20) / 16.0);
}
#elif defined(MODEL_stm32_isr)
static void before(uint32_t at) {
  if (at == 28) REG(at) = ready() << 7 | (uint32_t)(came < come) << 5 | (came == 5) << 3;
  if (at == 36) REG(at) = take();
}
static void after(uint32_t at, uint32_t word) {
  if (at == 12) rate = (double)BOARD_UART_HZ * BOARD_UART_SCALE / word;
  if (at == 0 && word != 13) die("transmitter and receiver are off");
  if (at == 40) send(word & 0xFF);
}
#elif defined(MODEL_pl011)
static void before(uint32_t at) {
  if (at == 0x18) REG(at) = (uint32_t)!ready() << 5 | (uint32_t)(came == come) << 4;
  if (at == 0) REG(at) = take();
}
static void after(uint32_t at, uint32_t word) {
  if (at == 0) send(word & 0xFF);
  if (at == 0x2C) rate = BOARD_UART_HZ / 16.0 / (REG(0x24) + REG(0x28) / 64.0);
  if (at == 0x30 && word != 0 && (word & 0x301) != 0x301) die("transmitter and receiver are off");
}
#endif

static uint32_t touched;
static int writes;

static void trap(int number, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  uint32_t at = (uint32_t)(uintptr_t)info->si_addr;
  (void)number;
  if (at < START || at >= START + PAGE) die("an address that is none of the line's");
  mprotect((void *)(uintptr_t)START, PAGE, PROT_READ | PROT_WRITE);
  touched = at - (uint32_t)BOARD_UART_BASE;
  writes = (registers[REG_ERR] & 2) != 0;
  before(touched);
  registers[REG_EFL] |= 0x100; /* one instruction */
}

static void step(int number, siginfo_t *info, void *context) {
  (void)number, (void)info;
  if (writes) after(touched, REG(touched));
  mprotect((void *)(uintptr_t)START, PAGE, PROT_NONE);
  ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}

int main(void) {
  struct sigaction act = {0};
  unsigned i, got = 0;
  uint8_t found[64];
  act.sa_flags = SA_SIGINFO;
  if (mmap((void *)(uintptr_t)START, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
           0) == MAP_FAILED) {
    die("no memory there");
  }
  act.sa_sigaction = trap;
  sigaction(SIGSEGV, &act, 0);
  act.sa_sigaction = step;
  sigaction(SIGTRAP, &act, 0);
  board_uart_init();
  if (board_uart_get() != -1) die("a byte came that nobody sent");
  for (i = 0; i < 300; ++i) {
    board_uart_put((uint8_t)(i * 7));
  }
  for (come = 0; come < 40; ++come) {
    coming[come] = (uint8_t)(come * 11 + 3);
  }
  for (i = 0; i < 400 && got < 40; ++i) {
    const int byte = board_uart_get();
    if (byte >= 0) {
      found[got++] = (uint8_t)byte;
    }
  }
  if (got != 40 || memcmp(found, coming, 40) != 0) die("what arrived is not what was sent");
  if (board_uart_get() != -1) die("a byte came twice");
  for (i = 0; i < 300; ++i) {
    if (gone[i] != (uint8_t)(i * 7)) die("what was sent is not what went out");
  }
  printf("%u bytes at %.0f baud\n", went, rate);
  return 0;
}
