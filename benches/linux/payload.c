/* What is measured: the first thing that it does is to read the clock. Then it tells, and waits for TERM. No library, so that
   nothing comes before. */
typedef unsigned long u64;

static long call(long number, long a, long b, long c, long d) {
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}

static void ended(int signal) {
    (void)signal;
    call(231, 0, 0, 0, 0); /* exit_group */
}

static void restorer(void) { call(15, 0, 0, 0, 0); /* rt_sigreturn */ }

void _start(void) {
    long now[2];
    call(228, 1, (long)now, 0, 0); /* clock_gettime(CLOCK_MONOTONIC) */
    struct { void (*handler)(int); u64 flags; void (*restorer)(void); u64 mask; } action = {ended, 0x04000000, restorer, 0};
    call(13, 15, (long)&action, 0, 8); /* rt_sigaction(SIGTERM) */
    u64 nanos = (u64)now[0] * 1000000000ul + (u64)now[1];
    char text[21];
    for (int i = 19; i >= 0; i--) {
        text[i] = (char)('0' + nanos % 10);
        nanos /= 10;
    }
    text[20] = '\n';
    call(1, 1, (long)text, 21, 0); /* write */
    for (;;) call(34, 0, 0, 0, 0); /* pause */
}
