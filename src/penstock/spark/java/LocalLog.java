package penstock;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.CopyOption;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
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
        checkSameTable(target);
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

  /**
   * A commit follows the one before it. Where that is gone, the table was dropped or replaced while the statement ran,
   * and its files with it.
   */
  private static void checkSameTable(java.nio.file.Path target) throws IOException {
    String name = target.getFileName().toString();
    if (name.length() != 25 || !name.endsWith(".json")) {
      return;
    }
    long version;
    try {
      version = Long.parseLong(name.substring(0, 20));
    } catch (NumberFormatException noCommit) {
      return;
    }
    if (version == 0) {
      return;
    }
    String before = String.format("%020d.", new Object[] {Long.valueOf(version - 1)});
    if (Files.exists(target.resolveSibling(before + "json"), new LinkOption[0])) {
      return;
    }
    String[] names = target.getParent().toFile().list();
    for (int index = 0; names != null && index < names.length; index++) {
      if (names[index].startsWith(before)) {
        return;
      }
    }
    throw new IOException(
        "The table was dropped or replaced while this statement ran, so nothing was committed: its log has no version "
            + (version - 1)
            + " ("
            + target.getParent()
            + ")");
  }

  private static void publish(java.nio.file.Path temporary, java.nio.file.Path target)
      throws IOException {
    try {
      Files.createLink(target, temporary);
    } catch (UnsupportedOperationException noLinks) {
      moveAlone(temporary, target);
    } catch (FileSystemException error) {
      // Over a network the answer to a link that was made may be lost, and the request sent again.
      if (isOurs(temporary, target)) {
        return;
      }
      if (error instanceof FileAlreadyExistsException || !hasNoLinks(error)) {
        throw error;
      }
      moveAlone(temporary, target);
    }
  }

  private static boolean isOurs(java.nio.file.Path temporary, java.nio.file.Path target) {
    try {
      return Files.isSameFile(target, temporary);
    } catch (IOException notThere) {
      return false;
    }
  }

  /** Whether the disk has no hard links (FAT, some network shares); no space left, say, is another matter. */
  private static boolean hasNoLinks(FileSystemException error) {
    String reason = String.valueOf(error.getReason());
    return reason.startsWith("Operation not permitted")
        || reason.startsWith("Operation not supported")
        || reason.startsWith("Not supported")
        || reason.startsWith("Function not implemented")
        || reason.startsWith("Too many links");
  }

  /** Looks and renames under a lock that ends with its process, because a rename alone may overwrite. */
  private static synchronized void moveAlone(
      java.nio.file.Path temporary, java.nio.file.Path target) throws IOException {
    FileChannel channel =
        FileChannel.open(
            target.resolveSibling(".penstock.lock"),
            new OpenOption[] {StandardOpenOption.CREATE, StandardOpenOption.WRITE});
    try {
      channel.lock();
      Files.move(temporary, target, new CopyOption[0]);
    } finally {
      channel.close();
    }
  }
}
