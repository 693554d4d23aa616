package wjoin.lines;

/** The text of a line of JSON, passed from its start. What is odd is not passed; the rest is as Jackson reads it. */
final class JsonText {
  private static final int MOST_NUMBER_BYTES = 100;
  private static final int MOST_DEPTH = 100;

  private byte[] line;
  private int length;
  private int at;
  /** All bytes of strings together: less than zero where one is not of ASCII. */
  private int bits;

  void start(byte[] line, int length) {
    this.line = line;
    this.length = length;
    at = 0;
    bits = 0;
  }

  /** Pass blanks, and return the place of what comes. */
  int place() {
    while (is(' ') || is('\t') || is('\n') || is('\r')) {
      at++;
    }
    return at;
  }

  /** Return the place behind what has been passed. */
  int end() {
    return at;
  }

  /** Return whether a character comes. */
  boolean is(char expected) {
    return at < length && line[at] == expected;
  }

  /** Pass blanks and a character. Return whether it comes. */
  boolean passed(char expected) {
    place();
    return skip(expected, expected);
  }

  /** Return whether blanks are all that comes, and all strings were UTF-8. */
  boolean isEnd() {
    return place() == length && (bits >= 0 || Rows.isText(line, length));
  }

  /** Pass a string without escapes and control characters. */
  boolean string() {
    if (!passed('"')) {
      return false;
    }
    int all = 0;
    while (at < length) {
      byte each = line[at++];
      if (each == '"') {
        bits |= all;
        return true;
      }
      if (each == '\\' || each >= 0 && each < ' ') {
        return false;
      }
      all |= each;
    }
    return false;
  }

  /** Pass whatever value. */
  boolean value() {
    return value(MOST_DEPTH);
  }

  private boolean value(int depth) {
    place();
    if (at == length || depth == 0) {
      return false;
    }
    return switch (line[at]) {
      case '"' -> string();
      case '{' -> members('{', '}', depth);
      case '[' -> members('[', ']', depth);
      case 't' -> word("true");
      case 'f' -> word("false");
      case 'n' -> word("null");
      default -> number();
    };
  }

  private boolean members(char start, char end, int depth) {
    passed(start);
    if (passed(end)) {
      return true;
    }
    do {
      if (start == '{' && !(string() && passed(':')) || !value(depth - 1)) {
        return false;
      }
    } while (passed(','));
    return passed(end);
  }

  private boolean word(String word) {
    for (int n = 0; n < word.length(); n++) {
      if (!is(word.charAt(n))) {
        return false;
      }
      at++;
    }
    return true;
  }

  private boolean number() {
    int start = at;
    skip('-', '-');
    if (is('0')) {
      at++;
    } else if (!digits()) {
      return false;
    }
    int whole = at;
    if (skip('.', '.') && !digits()) {
      return false;
    }
    if (skip('e', 'E')) {
      skip('+', '-');
      if (!digits()) {
        return false;
      }
    }
    // -0 is no negative zero to Jackson, -0.0 is.
    boolean isMinusZero = at == whole && line[start] == '-' && line[start + 1] == '0';
    return at - start <= MOST_NUMBER_BYTES && !isMinusZero;
  }

  private boolean skip(char one, char other) {
    boolean comes = is(one) || is(other);
    if (comes) {
      at++;
    }
    return comes;
  }

  private boolean digits() {
    int start = at;
    while (at < length && line[at] >= '0' && line[at] <= '9') {
      at++;
    }
    return at > start;
  }
}
