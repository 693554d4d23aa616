package wjoin.sinks;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** What is told of sinks that could not be written. */
final class Failures {
  private static final String CAUSED = "Caused by: ";
  private static final String CODE = "error[WJ704]: ";

  private Failures() {}

  /** Return an error that names a sink, and why it could not be written. */
  static IllegalStateException of(String sink, Throwable failed) {
    // Of an error with a cause Spark tells the cause.
    IllegalStateException told =
        new IllegalStateException(CODE + "the sink " + sink + " could not be written: " + cause(failed));
    told.addSuppressed(failed);
    return told;
  }

  /** Return the error of a task that names a sink, nothing where something else has failed. */
  static Optional<IllegalStateException> told(Throwable failed) {
    return lines(failed)
        .filter(each -> each.contains(CODE))
        .map(each -> new IllegalStateException(each.substring(each.indexOf(CODE))))
        .findFirst();
  }

  /** Return in a line why something failed: the innermost cause, also one that a task has told. */
  static String cause(Throwable failed) {
    List<String> causes = lines(failed).filter(each -> each.startsWith(CAUSED)).toList();
    return causes.isEmpty()
        ? failed.toString().lines().findFirst().orElse("")
        : causes.get(causes.size() - 1).substring(CAUSED.length());
  }

  private static Stream<String> lines(Throwable failed) {
    StringWriter trace = new StringWriter();
    failed.printStackTrace(new PrintWriter(trace));
    return trace.toString().lines().map(String::strip);
  }
}
