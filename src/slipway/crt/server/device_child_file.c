/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the dynamic child (child/device_child.c), as data: SLW_DEVICE_CHILD is its path. */
#if defined(SLW_DEVICE_CHILD)
__asm__(".section .rodata\n"
        ".global slw_device_child\n"
        ".global slw_device_child_end\n"
        ".balign 16\n"
        "slw_device_child:\n"
        ".incbin \"" SLW_DEVICE_CHILD "\"\n"
        "slw_device_child_end:\n"
        ".byte 0\n"
        ".text\n");
#else
typedef int slw_device_child_is_not_here;
#endif
