package wjoin.files;

import org.apache.hadoop.fs.LocalFileSystem;

/** Hadoop's file system for file: paths, with its checksums, over {@link RawFiles}. */
public final class CheckedFiles extends LocalFileSystem {
  public CheckedFiles() {
    super(new RawFiles());
  }
}
