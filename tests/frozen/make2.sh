#!/bin/sh
# Makes the frozen store of encoding 2: `AVOW=/path/to/that/avow tests/frozen/make2.sh`.
#
# As `make.sh`, for what encoding 2 named otherwise than encoding 3: a lock file by its bytes. Encoding 2 knew the shell and
# the libraries of programs, which are this machine's; so its one command is a program of the project that needs
# neither. It is only executed here; later it is only hashed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir bin
: > avow.toml

cat > bin/tool.c <<'C'
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
C
cc -Os -s -static -nostdlib -fno-stack-protector -Wl,-z,noseparate-code -Wl,--build-id=none -o bin/tool bin/tool.c

cat > requirements.txt <<'R'
# Made by a tool: pip-compile
second==2.0   # via first

First == 1.0
R
cat > spec.yaml <<'Y'
avow: 1
experiment: frozen-locks
axes: {n: [1, 2, 3]}
stages:
  double:
    kind: measure
    run: ["./bin/tool", "${axes.n}", "${outputs.result}"]
    code: [bin/tool]
    environment: {pip: requirements.txt}
    measurements: {result: double.json}
claims:
  grows:
    says: Doubles exceed 1
    select: double.double
    replicate: n
    rule: {kind: threshold, statistic: mean, above: 1}
Y

"$AVOW" register spec.yaml --accept-warnings
"$AVOW" run spec.yaml
"$AVOW" verdict spec.yaml

rm -rf "$here/v2"
mkdir -p "$here/v2"
cp -r avow.toml bin requirements.txt spec.yaml registrations "$here/v2/"
rm -rf .avow/index .avow/cache .avow/work .avow/log .avow/quarantine .avow/live .avow/.gitignore .avow/*lock .avow/ledger/*.lock
cp -r .avow "$here/v2/store"
chmod -R u+w "$here/v2"
