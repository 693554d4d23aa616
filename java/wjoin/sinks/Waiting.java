package wjoin.sinks;

/**
 * For which sink rows wait, of how many micro-batches and bytes, since when in milliseconds since 1970, why, and
 * whether the sink fails.
 */
public record Waiting(
    String sink, int microBatches, long bytes, long since, String why, boolean fails) {}
