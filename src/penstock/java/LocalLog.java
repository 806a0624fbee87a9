package penstock;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.CopyOption;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log on the local disk. Delta's own looks whether a version is there and then renames a file over it, so of
 * two processes that commit at once one could lose its commit; only one of them can make a hard link. It also starts
 * a `readlink` process for each end of each rename.
 */
public final class LocalLog extends HadoopFileSystemLogStore {
  public LocalLog(Configuration configuration) {
    super(configuration);
  }

  // Without generics: the compiler that Spark carries does not know them.
  @Override
  public void write(Path path, Iterator actions, Boolean overwrite, Configuration configuration)
      throws IOException {
    java.nio.file.Path target = Paths.get(path.toUri().getPath(), new String[0]);
    java.nio.file.Path temporary =
        target.resolveSibling("." + target.getFileName() + "." + UUID.randomUUID() + ".tmp");
    try {
      writeLines(temporary, actions);
      if (overwrite.booleanValue()) {
        Files.move(temporary, target, new CopyOption[] {StandardCopyOption.ATOMIC_MOVE});
      } else {
        publish(temporary, target);
      }
    } finally {
      Files.deleteIfExists(temporary);
    }
  }

  /** What Delta writes past this class, its checkpoints, is to be written beside and renamed. */
  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration configuration) {
    return Boolean.TRUE;
  }

  private static void writeLines(java.nio.file.Path file, Iterator lines) throws IOException {
    BufferedWriter writer = Files.newBufferedWriter(file, StandardCharsets.UTF_8);
    try {
      while (lines.hasNext()) {
        writer.write((String) lines.next());
        writer.write("\n");
      }
    } finally {
      writer.close();
    }
  }

  private static void publish(java.nio.file.Path temporary, java.nio.file.Path target)
      throws IOException {
    try {
      Files.createLink(target, temporary);
    } catch (FileAlreadyExistsException exists) {
      throw exists;
    } catch (UnsupportedOperationException noLinks) {
      Files.move(temporary, target, new CopyOption[0]);
    } catch (FileSystemException noLinks) {
      // A disk without hard links (FAT, some network shares): as Delta does it.
      Files.move(temporary, target, new CopyOption[0]);
    }
  }
}
