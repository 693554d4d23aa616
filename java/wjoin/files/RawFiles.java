package wjoin.files;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's files of this machine, whose permissions are set in this process.
 *
 * <p>Without its native library Hadoop starts a process (chmod) for each file and folder that it makes.
 */
public final class RawFiles extends RawLocalFileSystem {
  private static final int BEYOND_READ_WRITE_EXECUTE = ~0777;

  @Override
  public void setPermission(Path path, FsPermission permission) throws IOException {
    if ((permission.toShort() & BEYOND_READ_WRITE_EXECUTE) != 0) {
      super.setPermission(path, permission);
      return;
    }
    String text =
        permission.getUserAction().SYMBOL
            + permission.getGroupAction().SYMBOL
            + permission.getOtherAction().SYMBOL;
    try {
      Files.setPosixFilePermissions(
          pathToFile(path).toPath(), PosixFilePermissions.fromString(text));
    } catch (UnsupportedOperationException noPosix) {
      super.setPermission(path, permission);
    }
  }
}
