package wjoin.sinks;

/**
 * For which sink rows wait, of how many micro-batches and bytes, since when in milliseconds since 1970, and why.
 */
public record Waiting(String sink, int microBatches, long bytes, long since, String why) {}
