package wjoin.lines;

import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.zone.ZoneOffsetTransition;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;

/** Dates and times in bytes of text: yyyy-MM-dd, behind it HH:mm:ss and up to six digits of a fraction. */
final class Moments {
  static final int DATE_BYTES = 10;
  static final int NO_DAY = Integer.MIN_VALUE;
  static final long NONE = Long.MIN_VALUE;

  private static final int SECOND_BYTES = 19;
  private static final int MOST_BYTES = 26;
  private static final long SECOND = 1_000_000;
  private static final long DAY = 86_400 * SECOND;
  private static final long DAY_SECONDS = 86_400;

  private final ZoneId zone;
  /** The date that was read last, as the number yyyyMMdd, its day, and how far its clocks are from UTC. */
  private int lastDate = NO_DAY;
  private int lastDay = NO_DAY;
  private long lastOffset = NONE;

  /** {@code zone}: of what names none. */
  Moments(ZoneId zone) {
    this.zone = zone;
  }

  /** Return the day of a date, counted from 1970, NO_DAY where the bytes are none. */
  int day(byte[] line, int at) {
    int year = digits(line, at, 4);
    int month = digits(line, at + 5, 2);
    int dayOfMonth = digits(line, at + 8, 2);
    if ((year | month | dayOfMonth) < 0 || year == 0 || line[at + 4] != '-' || line[at + 7] != '-') {
      return NO_DAY;
    }
    int date = (year * 100 + month) * 100 + dayOfMonth;
    if (date != lastDate) {
      try {
        lastDay = (int) LocalDate.of(year, month, dayOfMonth).toEpochDay();
      } catch (DateTimeException none) {
        return NO_DAY;
      }
      lastDate = date;
      lastOffset = offset(lastDay);
    }
    return lastDay;
  }

  /** Return the microseconds of a time since 1970 as a clock shows them, NONE where the bytes are no such time. */
  long local(byte[] line, int start, int end) {
    int length = end - start;
    if (length < SECOND_BYTES || length > MOST_BYTES) {
      return NONE;
    }
    int hour = digits(line, start + 11, 2);
    int minute = digits(line, start + 14, 2);
    int second = digits(line, start + 17, 2);
    byte between = line[start + DATE_BYTES];
    if ((hour | minute | second) < 0
        || hour > 23
        || minute > 59
        || second > 59
        || between != ' ' && between != 'T'
        || line[start + 13] != ':'
        || line[start + 16] != ':') {
      return NONE;
    }
    long micros = fraction(line, start + SECOND_BYTES, end);
    int day = day(line, start);
    return micros < 0 || day == NO_DAY
        ? NONE
        : day * DAY + ((hour * 60 + minute) * 60 + second) * SECOND + micros;
  }

  /** Return the microseconds of a moment since 1970 in UTC, NONE where the bytes are none. */
  long instant(byte[] line, int start, int end) {
    boolean isUtc = line[end - 1] == 'Z';
    long local = local(line, start, isUtc ? end - 1 : end);
    if (local != NONE && (isUtc || lastOffset != NONE)) {
      return isUtc ? local : local - lastOffset;
    }
    Option<Object> read = DateTimeUtils.stringToTimestamp(UTF8String.fromBytes(line, start, end - start), zone);
    return read.isEmpty() ? NONE : (long) read.get();
  }

  /** Return the microseconds by which clocks are ahead of UTC on a day, NONE where they are set about then. */
  private long offset(int day) {
    Instant start = Instant.ofEpochSecond((day - 2) * DAY_SECONDS);
    ZoneOffsetTransition next = zone.getRules().nextTransition(start);
    return next != null && next.getInstant().isBefore(start.plusSeconds(5 * DAY_SECONDS))
        ? NONE
        : zone.getRules().getOffset(start).getTotalSeconds() * SECOND;
  }

  private static long fraction(byte[] line, int start, int end) {
    if (start == end) {
      return 0;
    }
    int micros = digits(line, start + 1, end - start - 1);
    if (line[start] != '.' || start + 1 == end || micros < 0) {
      return NONE;
    }
    for (int n = end - start; n <= 6; n++) {
      micros *= 10;
    }
    return micros;
  }

  /** Return the number that some digits are, -1 where a byte is none. */
  private static int digits(byte[] line, int start, int count) {
    int value = 0;
    for (int at = start; at < start + count; at++) {
      int digit = line[at] - '0';
      if (digit < 0 || digit > 9) {
        return -1;
      }
      value = 10 * value + digit;
    }
    return value;
  }
}
