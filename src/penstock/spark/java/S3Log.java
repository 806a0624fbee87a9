package penstock;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Abortable;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log on S3. Delta's own looks whether a version is there and then writes it, so of two drivers that commit at
 * once one could lose its commit. Here S3 decides, by a put with a condition. Where its answer is lost, or says that the
 * version is there, the version is read: equal bytes are this commit, because each commit carries an id of its own.
 */
public final class S3Log extends HadoopFileSystemLogStore {
  private static final String CONDITION = "fs.option.create.conditional.overwrite";
  private static final String MULTIPART = "fs.s3a.create.multipart";
  private static final String SINGLE_WRITER = "fs.penstock.single.writer";
  private static final String SECONDS = "fs.penstock.commit.seconds";
  private static final long PART = 64L * 1024 * 1024;
  private static final ConcurrentHashMap PARTS_ARE_SAFE = new ConcurrentHashMap();

  public S3Log(Configuration configuration) {
    super(configuration);
  }

  // Without generics: the compiler that Spark carries does not know them.
  @Override
  public void write(Path path, Iterator actions, Boolean overwrite, Configuration configuration)
      throws IOException {
    FileSystem store = path.getFileSystem(configuration);
    byte[] lines = bytes(actions);
    if (overwrite.booleanValue()) {
      put(store.create(path, true), lines);
      return;
    }
    checkSameTable(store, path);
    if (configuration.getBoolean(SINGLE_WRITER, false)) {
      writeAlone(store, path, lines);
      return;
    }
    checkUnique(path, lines);
    if (lines.length >= configuration.getLongBytes("fs.s3a.multipart.size", PART)) {
      checkParts(store, path);
    }
    commit(store, path, lines, configuration.getLong(SECONDS, 180));
  }

  /** An object is there as a whole or not at all. */
  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration configuration) {
    return Boolean.FALSE;
  }

  /** Put the version if it is not there, and find out what has happened where the answer does not say. */
  private static void commit(FileSystem store, Path path, byte[] lines, long seconds)
      throws IOException {
    long until = System.nanoTime() + seconds * 1000000000L;
    for (int attempt = 0; ; attempt++) {
      IOException failure;
      try {
        put(conditionally(store, path, false), lines);
        return;
      } catch (IOException error) {
        failure = error;
      }
      byte[] there = read(store, path, lines.length, until, failure);
      if (there != null) {
        if (Arrays.equals(there, lines)) {
          return;
        }
        // Whatever is still under way can't take the place of what is there.
        throw new FileAlreadyExistsException(path.toString());
      }
      if (isRefused(failure)) {
        throw failure;
      }
      if (System.nanoTime() >= until) {
        throw unknown(path, failure);
      }
      pause(attempt, path, failure);
    }
  }

  /** With one driver, as the user says: a look and a put, one at a time. */
  private static synchronized void writeAlone(FileSystem store, Path path, byte[] lines)
      throws IOException {
    if (store.exists(path)) {
      throw new FileAlreadyExistsException(path.toString());
    }
    put(store.create(path, true), lines);
  }

  private static FSDataOutputStream conditionally(FileSystem store, Path path, boolean inParts)
      throws IOException {
    FSDataOutputStreamBuilder file = store.createFile(path);
    file.overwrite(true);
    file.must(CONDITION, "true");
    if (inParts) {
      file.must(MULTIPART, "true");
    }
    return (FSDataOutputStream) file.build();
  }

  private static void put(FSDataOutputStream file, byte[] content) throws IOException {
    try {
      file.write(content);
    } catch (IOException error) {
      // To close it would make a version of the part that was written.
      if (file.getWrappedStream() instanceof Abortable) {
        ((Abortable) file.getWrappedStream()).abort();
      }
      throw error;
    }
    file.close();
  }

  /** What lies at a path, with one byte more than the length at most; null if nothing does. */
  private static byte[] read(
      FileSystem store, Path path, int length, long until, IOException failure) throws IOException {
    for (int attempt = 0; ; attempt++) {
      try {
        return read(store, path, length);
      } catch (FileNotFoundException nothing) {
        return null;
      } catch (IOException error) {
        if (isRefused(error) || System.nanoTime() >= until) {
          failure.addSuppressed(error);
          throw isRefused(failure) ? failure : unknown(path, failure);
        }
        pause(attempt, path, failure);
      }
    }
  }

  private static byte[] read(FileSystem store, Path path, int length) throws IOException {
    FSDataInputStream file = store.open(path);
    try {
      byte[] found = new byte[length + 1];
      int size = 0;
      while (size < found.length) {
        int more = file.read(found, size, found.length - size);
        if (more < 0) {
          break;
        }
        size += more;
      }
      return Arrays.copyOf(found, size);
    } catch (EOFException changed) {
      throw new IOException(changed);
    } finally {
      file.close();
    }
  }

  /** Whether the store has said that it will not do it, or was not asked, so that nothing was written. */
  private static boolean isRefused(IOException error) {
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      String name = cause.getClass().getSimpleName();
      if (name.equals("NoAuthWithAWSException")
          || name.equals("CredentialInitializationException")
          || name.equals("UnknownStoreException")
          || name.equals("UnsupportedRequestException")) {
        return true;
      }
      int status = status(cause);
      if (status > 0) {
        // Others may succeed later: a missing upload (404), a timeout, a conflict, a condition, too many requests.
        return status < 500
            && status != 404
            && status != 408
            && status != 409
            && status != 412
            && status != 429;
      }
    }
    return false;
  }

  /** The status in an answer of S3; 0 if this is none. Amazon's classes are not there when this is compiled. */
  private static int status(Throwable error) {
    try {
      return ((Integer) error.getClass().getMethod("statusCode", new Class[0]).invoke(error, new Object[0]))
          .intValue();
    } catch (ReflectiveOperationException noAnswer) {
      return 0;
    }
  }

  private static IOException unknown(Path path, IOException failure) {
    return new IOException(
        "Whether this version was committed is not known: the store did not say, and does not answer now. Nothing was"
            + " repeated. Run again when the store answers; the log tells then ("
            + path
            + "): "
            + failure.getMessage(),
        failure);
  }

  private static void pause(int attempt, Path path, IOException failure) throws IOException {
    try {
      Thread.sleep(Math.min(100L << Math.min(attempt, 6), 5000L));
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
      InterruptedIOException stopped = new InterruptedIOException(unknown(path, failure).getMessage());
      stopped.initCause(failure);
      throw stopped;
    }
  }

  /** Equal bytes are taken for this commit, so no two commits may have equal bytes: each has an id in its commitInfo. */
  private static void checkUnique(Path path, byte[] lines) throws IOException {
    String[] all = new String(lines, StandardCharsets.UTF_8).split("\n");
    for (int index = 0; index < all.length; index++) {
      if (all[index].startsWith("{\"commitInfo\":") && all[index].indexOf("\"txnId\":\"") > 0) {
        return;
      }
    }
    throw new IOException(
        "Nothing was committed: the commit has no `txnId` in its commitInfo, so that a lost answer of S3 could not be"
            + " told from another driver's commit. Leave spark.databricks.delta.commitInfo.enabled on ("
            + path
            + ")");
  }

  /**
   * A commit follows the one before it. Where that is gone, the table was dropped or replaced while the statement ran,
   * and its files with it.
   */
  private static void checkSameTable(FileSystem store, Path path) throws IOException {
    String name = path.getName();
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
    try {
      store.getFileStatus(new Path(path.getParent(), before + "json"));
      return;
    } catch (FileNotFoundException cleaned) {
      // Log cleanup leaves a checkpoint of it.
    }
    try {
      FileStatus[] files = store.listStatus(path.getParent());
      for (int index = 0; index < files.length; index++) {
        if (files[index].getPath().getName().startsWith(before)) {
          return;
        }
      }
    } catch (FileNotFoundException dropped) {
      // Told below.
    }
    throw new IOException(
        "The table was dropped or replaced while this statement ran, so nothing was committed: its log has no version "
            + (version - 1)
            + " ("
            + path.getParent()
            + ")");
  }

  /**
   * A large commit is uploaded in parts, and its completion carries the condition. A store may know the condition for a
   * put and ignore it there, so it is tried once for each bucket, by a small object in parts that is put twice.
   */
  private static void checkParts(FileSystem store, Path path) throws IOException {
    String bucket = store.getUri().toString();
    if (PARTS_ARE_SAFE.containsKey(bucket)) {
      return;
    }
    Path probe = new Path(path.getParent(), ".penstock-probe-" + UUID.randomUUID());
    try {
      put(conditionally(store, probe, true), new byte[] {1});
      try {
        put(conditionally(store, probe, true), new byte[] {2});
      } catch (IOException refused) {
        if (refused.getClass().getSimpleName().equals("RemoteFileChangedException")) {
          PARTS_ARE_SAFE.put(bucket, Boolean.TRUE);
          return;
        }
        throw refused;
      }
      throw new IOException(
          "Nothing was committed: this store ignores `If-None-Match` where an upload in parts is completed, so two"
              + " writers could overwrite each other's commits. Raise spark.hadoop.fs.s3a.multipart.size above the"
              + " size of a commit, use another store, or set session.single_writer: true if there is one writer ("
              + bucket
              + ")");
    } finally {
      store.delete(probe, false);
    }
  }

  private static byte[] bytes(Iterator lines) throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    while (lines.hasNext()) {
      all.write(((String) lines.next()).getBytes(StandardCharsets.UTF_8));
      all.write('\n');
    }
    return all.toByteArray();
  }
}
