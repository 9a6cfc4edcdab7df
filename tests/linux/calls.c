/* Makes every call there is, by the numbers of each architecture that an x86-64 machine takes, with arguments that mean nothing
   (all bits set), and prints how each failed: "architecture number errno". Left out is what would end or stop it, or take long. */
typedef long word;

static word native(word number) {
    word result;
    register word r10 __asm__("r10") = -1, r8 __asm__("r8") = -1, r9 __asm__("r9") = -1;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(-1l), "S"(-1l), "d"(-1l), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return result;
}

static word forebear(word number) {
    int result;
    __asm__ volatile("push %%rbp; mov $-1, %%ebp; int $0x80; pop %%rbp"
                     : "=a"(result)
                     : "a"((int)number), "b"(-1), "c"(-1), "d"(-1), "S"(-1), "D"(-1)
                     : "r8", "r9", "r10", "r11", "memory");
    return result;
}

static char text[1 << 16];
static int length;

static void put(word value) {
    char digits[20];
    int n = 0;
    do digits[n++] = (char)('0' + value % 10); while (value /= 10);
    while (n) text[length++] = digits[--n];
}

static void tell(const char *architecture, word number, word result) {
    while (*architecture) text[length++] = *architecture++;
    text[length++] = ' ';
    put(number);
    text[length++] = ' ';
    put(result < 0 && result > -4096 ? -result : 0);
    text[length++] = '\n';
}

static int is_in(const short *list, int count, int number) {
    for (int i = 0; i < count; i++)
        if (list[i] == number) return 1;
    return 0;
}

/* Its own end, a copy of itself, a wait, sync, the return from a signal, what only the kernel's own probes may call. */
static const short NOT_NATIVE[] = {15, 34, 56, 57, 58, 60, 162, 231, 335, 336, 513};
static const short NOT_FOREBEAR[] = {1, 2, 29, 36, 72, 119, 120, 173, 190, 252};
#define IS_IN(list, number) is_in(list, sizeof list / sizeof *list, number)

void begin(void) {
    for (int number = 0; number < 480; number++) {
        if (!IS_IN(NOT_NATIVE, number)) tell("x86_64", number, native(number));
        if (!IS_IN(NOT_FOREBEAR, number)) tell("x86", number, forebear(number));
    }
    for (int number = 0; number < 560; number++)
        if (!IS_IN(NOT_NATIVE, number)) tell("x32", number, native(0x40000000l | number));
    for (char *at = text; at < text + length;) {
        word written;
        __asm__ volatile("syscall" : "=a"(written) : "a"(1l), "D"(1l), "S"(at), "d"((word)(text + length - at)) : "rcx", "r11", "memory");
        if (written <= 0) break;
        at += written;
    }
    __asm__ volatile("syscall" : : "a"(231l), "D"(0l));
    __builtin_unreachable();
}

/* The stack as a C function wants it. */
__asm__(".globl _start\n_start: and $-16, %rsp\n call begin\n");
