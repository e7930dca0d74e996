package io.icebergcrypto.kms.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.ServiceConfigurationError;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.opentest4j.AssertionFailedError;

/** A service that is left out may be a guard: only one whose engine is absent is. */
class ServicesTest {
  private static final String ENGINE = "org.opentest4j.";

  @TempDir private Path folder;

  /** What serves. */
  public interface Service {}

  /** One without an engine. */
  public static final class Plain implements Service {}

  /** One of an engine, which is a library of tests here. */
  public static final class OfAnEngine implements Service {
    /** Uses the engine. */
    public OfAnEngine() {
      new AssertionFailedError("");
    }
  }

  /** One that fails when its class starts. */
  public static final class Broken implements Service {
    private static final int NUMBER = Integer.parseInt("none");

    /** Uses it. */
    public Broken() {
      assertThat(NUMBER).isZero();
    }
  }

  /** One whose constructor finds that a class of its engine failed to start. */
  public static final class OnBroken implements Service {
    /** Uses the other one. */
    public OnBroken() {
      new Broken();
    }
  }

  @Test
  void oneWhoseEngineIsAbsentIsLeftOut() throws IOException {
    assertThat(found(true, OfAnEngine.class, Plain.class)).containsExactly("OfAnEngine", "Plain");
    assertThat(found(false, OfAnEngine.class, Plain.class)).containsExactly("Plain");
  }

  @Test
  void oneThatFailsToStartIsNot() {
    for (int time = 0; time < 2; time++) { // Java reports the first time by another error
      for (Class<?> service : List.of(Broken.class, OnBroken.class)) {
        assertThatThrownBy(() -> found(false, Plain.class, service))
            .isInstanceOf(ServiceConfigurationError.class)
            .hasMessageContaining(service.getName());
      }
    }
  }

  private List<String> found(boolean engine, Class<?>... services) throws IOException {
    Path list = folder.resolve("META-INF/services/" + Service.class.getName());
    Files.createDirectories(list.getParent());
    Files.write(list, List.of(services).stream().map(Class::getName).toList());
    try (Loader loader = new Loader(folder.toUri().toURL(), engine)) {
      return Services.of(Service.class, loader).stream()
          .map(service -> service.getClass().getName().replaceFirst(".*\\$", ""))
          .toList();
    }
  }

  /** Loads the services itself, and the engine or not. */
  private static final class Loader extends URLClassLoader {
    private final boolean engine;

    private Loader(URL folder, boolean engine) {
      super(new URL[] {folder}, ServicesTest.class.getClassLoader());
      this.engine = engine;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      if (!engine && name.startsWith(ENGINE)) {
        throw new ClassNotFoundException(name);
      }

      return name.equals(OfAnEngine.class.getName()) ? own(name) : super.loadClass(name, resolve);
    }

    private Class<?> own(String name) throws ClassNotFoundException {
      Class<?> loaded = findLoadedClass(name);
      String file = name.replace('.', '/') + ".class";
      try (InputStream code = loaded != null ? null : getParent().getResourceAsStream(file)) {
        if (loaded != null) {
          return loaded;
        }

        byte[] bytes = code.readAllBytes();
        return defineClass(name, bytes, 0, bytes.length);
      } catch (IOException e) {
        throw new ClassNotFoundException(name, e);
      }
    }

    @Override
    public URL getResource(String name) {
      return !engine && name.startsWith(ENGINE.replace('.', '/')) ? null : super.getResource(name);
    }
  }
}
