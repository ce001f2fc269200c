/* Where a Cortex-M starts; the rest of the start-up is newlib's. */
extern void _start(void);

extern void *const vectors[2];
__attribute__((section(".vectors"), used)) void *const vectors[2] = {
    (void *)0x20400000, (void *)_start};
