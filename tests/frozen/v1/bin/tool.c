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
