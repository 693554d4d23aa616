package wjoin.sql;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Statement sets of which END is to come.
 *
 * <p>Spark's SQL shell and beeline divide what they read at each semicolon, also inside a set: so its parts come as
 * statements of their own, and wait here for the others.
 */
final class Pieces {
  private static final Map<String, String> BEGUN = new ConcurrentHashMap<>();

  private Pieces() {}

  /** Return a statement of a session with what has come before it of the same set. */
  static String whole(String session, String text) {
    String begun = BEGUN.get(session);
    return begun == null ? text : begun + ";\n" + text.strip();
  }

  static boolean begun(String session) {
    return BEGUN.containsKey(session);
  }

  /** Keep the beginning of a set. */
  static void keep(String session, String text) {
    BEGUN.put(session, text.strip());
  }

  /** Forget the beginning of a set: it has come to its end, or something was wrong with it. */
  static void end(String session) {
    BEGUN.remove(session);
  }

  /** Whether any set waits for its end. */
  static boolean any() {
    return !BEGUN.isEmpty();
  }
}
