int half(int value) { return value / 2; }
