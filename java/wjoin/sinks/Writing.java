package wjoin.sinks;

/** Something that is still to be written. */
@FunctionalInterface
interface Writing {
  void write() throws Exception;
}
