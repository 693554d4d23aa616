package wjoin.sql;

/**
 * What Python may ask of a planner: its work, and to note what it tells.
 *
 * <p>Python is given one object of it by Spark's server. Nobody else has one: SQL can call static methods only.
 */
public final class Work {
  /** By which name Python finds the object. */
  static final String NAME = "wjoin-work";

  private final Planner planner;

  Work(Planner planner) {
    this.planner = planner;
  }

  /** Return the next thing to do for Python, null where there is none for a while. */
  public Request next() throws InterruptedException {
    return planner.next();
  }

  /** Note how many sessions the process in Python holds from now on. */
  public void holds(int sessions) {
    Planner.holds(sessions);
  }

  /** Note a query that a session has started, by the number of its run. */
  public void runs(String run, String name) {
    Planner.runs(run, name);
  }

  /** Note that a query had ended when it was noted. */
  public void ended(String run) {
    Planner.ended(run);
  }
}
