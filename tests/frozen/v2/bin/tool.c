/* `tool N FILE` writes {"double": 2N}, for N below 5, without any library. */
static long call(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
__attribute__((used)) void start(long *stack) {
    char **words = (char **)(stack + 1);
    char text[] = "{\"double\": 0}\n";
    text[11] += 2 * (words[1][0] - '0');
    long file = call(2, (long)words[2], 0101, 0644);
    long wrote = call(1, file, (long)text, sizeof text - 1);
    call(60, wrote != sizeof text - 1, 0, 0);
}
__asm__(".globl _start\n_start: mov %rsp, %rdi\nand $-16, %rsp\ncall start\n");
