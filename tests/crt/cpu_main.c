/* Prints what the runtime says of each feature that is named: NAME=0 (lacks), 1 (has), 2 (unknown);
 * then whether a handler of SIGILL that was there before is there still. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "slipway/cpu.h"

static void on_illegal(int number) { (void)number; }

int main(int argc, char **argv) {
  struct sigaction now;
  memset(&now, 0, sizeof now);
  now.sa_handler = on_illegal;
  if (sigaction(SIGILL, &now, NULL) != 0) {
    return 1;
  }
  for (int i = 1; i < argc; ++i) {
    printf("%s=%d\n", argv[i], (int)slw_cpu_has(argv[i], strlen(argv[i])));
  }
  if (sigaction(SIGILL, NULL, &now) != 0) {
    return 1;
  }
  printf("handler=%d\n", now.sa_handler == on_illegal);
  return 0;
}
