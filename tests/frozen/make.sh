#!/bin/sh
# Makes the frozen store of an encoding: `AVOW=/path/to/that/avow tests/frozen/make.sh v1`.
#
# A frozen store is made once, by a program of its time, and never changed: `tests/upgrade.rs` copies it and
# proves what the present program makes of it. So that it is the same on every machine, nothing in its actions
# may depend on the machine that made it: the commands use what the shell itself carries out (encoding 1 did not
# identify the shell), and a compiled program that is a file of the project (encoding 1 did not identify
# its libraries). The program is only executed here; later it is only hashed.
set -eu
name=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir bin
: > avow.toml

cat > bin/half.c <<'C'
int half(int value) { return value / 2; }
C
cat > bin/tool.c <<'C'
#include <stdio.h>
#include <stdlib.h>
int half(int value);
int main(int count, char **words) {
    if (count < 3) return 2;
    FILE *out = fopen(words[2], "w");
    if (!out) return 1;
    fprintf(out, "{\"half\": %d}\n", half(atoi(words[1])));
    return fclose(out) != 0;
}
C
small="-Os -s -Wl,-z,noseparate-code -Wl,--build-id=none"
cc $small -shared -nostdlib -Wl,-soname,libhalf.so -o bin/libhalf.so bin/half.c
cc $small -o bin/tool bin/tool.c -Lbin -lhalf -Wl,-rpath,'$ORIGIN'

cat > data.txt <<'D'
7
D
cat > spec.yaml <<'Y'
avow: 1
experiment: frozen
params: {factor: 3}
axes: {seed: [1, 2, 3]}
stages:
  draw:
    run: |
      read start < ${inputs.data}
      seed=${axes.seed}
      factor=${params.factor}
      echo $((start + seed * factor)) > ${outputs.value}
      echo a line from the draw
    inputs: {data: data.txt}
    outputs: {value: value.txt}
  score:
    kind: measure
    run: |
      read value < ${inputs.value}
      echo "{\"score\": $value}" > ${outputs.result}
    inputs: {value: draw.value}
    measurements: {result: result.json}
  tidy:
    kind: measure
    run: |
      while read value; do
        echo "{\"name\": \"level\", \"value\": $value, \"layer\": 1}"
        echo "{\"name\": \"level\", \"value\": $((value + 1)), \"layer\": 2}"
      done < ${inputs.value} > ${outputs.lines}
    inputs: {value: draw.value}
    measurements: {lines: {file: levels.jsonl, keys: [layer]}}
  halve:
    kind: measure
    run: ["./bin/tool", "${axes.seed}", "${outputs.result}"]
    code: [bin/tool, bin/libhalf.so]
    measurements: {result: half.json}
  clock:
    kind: measure
    reuse: never
    run: |
      echo '{"ticks": 5}' > ${outputs.result}
    measurements: {result: ticks.json}
claims:
  grows:
    says: Scores exceed 5
    select: score.score
    rule: {kind: threshold, statistic: mean, above: 5}
Y

# An exploratory run, a registration, and a run under it.
"$AVOW" run spec.yaml --only clock
"$AVOW" register spec.yaml --accept-warnings
"$AVOW" run spec.yaml
"$AVOW" verdict spec.yaml

rm -rf "$here/$name"
mkdir -p "$here/$name"
cp -r avow.toml bin data.txt spec.yaml registrations "$here/$name/"
# Without what can be made again, under a name that version control keeps.
rm -rf .avow/index .avow/work .avow/log .avow/lock .avow/quarantine .avow/.gitignore .avow/ledger/*.lock
cp -r .avow "$here/$name/store"
chmod -R u+w "$here/$name"
