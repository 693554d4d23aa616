package wjoin.lines;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;

/** Numbers in bytes of text, and words: what is not in plain ASCII digits is none. */
final class Numbers {
  /** No whole number; the one that it is itself is left to Spark. */
  static final long NONE = Long.MIN_VALUE;

  private static final int MOST_DIGITS = 19;
  /** A double has all numbers of so many digits, and all powers of ten up to the 22nd. */
  private static final int EXACT_DIGITS = 15;
  private static final int EXACT_SINGLE_DIGITS = 7;
  private static final double[] POWERS = new double[EXACT_DIGITS + 1];
  private static final int FRACTION_BITS = 4;
  private static final int FRACTION = (1 << FRACTION_BITS) - 1;

  static {
    POWERS[0] = 1;
    for (int n = 1; n < POWERS.length; n++) {
      POWERS[n] = 10 * POWERS[n - 1];
    }
  }

  private Numbers() {}

  /** Return whether bytes are a word of small letters, in whatever case. */
  static boolean isWord(String word, byte[] line, int start, int end) {
    if (end - start != word.length()) {
      return false;
    }
    for (int n = 0; n < word.length(); n++) {
      if ((line[start + n] | ' ') != word.charAt(n)) {
        return false;
      }
    }
    return true;
  }

  /** Return the whole number that bytes are, NONE where they are none. */
  static long whole(byte[] line, int start, int end) {
    boolean isNegative = line[start] == '-';
    int first = isNegative ? start + 1 : start;
    if (first == end || end - first > MOST_DIGITS) {
      return NONE;
    }
    long value = 0;
    for (int at = first; at < end; at++) {
      int digit = line[at] - '0';
      if (digit < 0 || digit > 9) {
        return NONE;
      }
      value = 10 * value + digit;
    }
    // 19 digits fit in 64 bits, but maybe not in 63.
    return value < 0 ? NONE : isNegative ? -value : value;
  }

  /** Return the number that bytes are, NaN where they are none. */
  static double real(byte[] line, int start, int end) {
    boolean isNegative = line[start] == '-';
    long digits = digits(line, isNegative ? start + 1 : start, end, EXACT_DIGITS);
    if (digits >= 0) {
      // Both are exact, so the quotient is rounded once.
      double value = (digits >> FRACTION_BITS) / POWERS[(int) digits & FRACTION];
      return isNegative ? -value : value;
    }
    String text = text(line, start, end, "+-.eE");
    try {
      return text == null ? Double.NaN : Double.parseDouble(text);
    } catch (NumberFormatException none) {
      return Double.NaN;
    }
  }

  /** Return the number of 32 bits that bytes are, NaN where they are none. */
  static float single(byte[] line, int start, int end) {
    boolean isNegative = line[start] == '-';
    long digits = digits(line, isNegative ? start + 1 : start, end, EXACT_SINGLE_DIGITS);
    if (digits >= 0) {
      float value = (float) (digits >> FRACTION_BITS) / (float) POWERS[(int) digits & FRACTION];
      return isNegative ? -value : value;
    }
    String text = text(line, start, end, "+-.eE");
    try {
      return text == null ? Float.NaN : Float.parseFloat(text);
    } catch (NumberFormatException none) {
      return Float.NaN;
    }
  }

  /** Return the number of some precision that bytes are, null where they are none. */
  static Decimal decimal(byte[] line, int start, int end, DecimalType type) {
    String text = text(line, start, end, "-.");
    try {
      return text == null ? null : Decimal.apply(new BigDecimal(text), type.precision(), type.scale());
    } catch (NumberFormatException | ArithmeticException none) {
      return null;
    }
  }

  /** Return digits without their point, and in the lowest bits how many are behind it; -1: other bytes, or more. */
  private static long digits(byte[] line, int start, int end, int most) {
    long value = 0;
    int count = 0;
    int point = end - 1;
    for (int at = start; at < end; at++) {
      int digit = line[at] - '0';
      if (digit >= 0 && digit <= 9) {
        value = 10 * value + digit;
        count++;
      } else if (line[at] == '.' && count == at - start) {
        point = at;
      } else {
        return -1;
      }
      if (count > most) {
        return -1;
      }
    }
    return count == 0 ? -1 : value << FRACTION_BITS | end - 1 - point;
  }

  /** Return bytes as text, null where there are others than digits and some characters. */
  private static String text(byte[] line, int start, int end, String others) {
    for (int at = start; at < end; at++) {
      if ((line[at] < '0' || line[at] > '9') && others.indexOf(line[at]) < 0) {
        return null;
      }
    }
    return new String(line, start, end - start, StandardCharsets.ISO_8859_1);
  }
}
