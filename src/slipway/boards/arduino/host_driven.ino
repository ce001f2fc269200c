// The model @NAME@ behind RPC sessions over Serial: micro.Session(micro.SerialPort(port)) drives it.
extern "C" {
#include "src/board.h"
int slipway_main(void);
}

extern "C" void board_uart_init(void) {}
extern "C" void board_uart_put(uint8_t byte) { Serial.write(byte); }
extern "C" int board_uart_get(void) { return Serial.read(); }

// micros() wraps after 71 minutes; the difference to the last call never does.
extern "C" uint64_t board_time_ns(void) {
  static uint32_t last;
  static uint64_t total_us;
  uint32_t now = micros();
  total_us += (uint32_t)(now - last);
  last = now;
  return total_us * 1000u;
}

extern "C" void board_print(const char *text) { Serial.print(text); }

// Code is flashed, not uploaded.
extern "C" void board_code_space(uint8_t **begin, uint8_t **end) {
  *begin = 0;
  *end = 0;
}
extern "C" void board_code_written(void *, size_t) {}

void setup() { Serial.begin(115200); }
void loop() { (void)slipway_main(); }
