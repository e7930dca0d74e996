package io.icebergcrypto.kms.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.PodSpec;
import io.fabric8.kubernetes.api.model.Volume;
import io.fabric8.kubernetes.api.model.VolumeMount;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.k8s.KubernetesConf;
import org.apache.spark.deploy.k8s.SparkPod;
import org.apache.spark.deploy.k8s.submit.KubernetesDriverBuilder;
import org.apache.spark.deploy.k8s.submit.PythonMainAppResource;
import org.apache.spark.internal.config.package$;
import org.apache.spark.resource.ResourceProfile$;
import org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBuilder;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import scala.Option;

/** The pod template of the examples, in what Spark itself makes of it. There is no cluster. */
class PodTemplateTest {
  private static final Path TEMPLATE =
      Path.of(
          System.getProperty("iceberg.crypto.root"), "examples", "kubernetes", "keystore-pod.yaml");
  private static final KubernetesClient CLIENT =
      new KubernetesClientBuilder().withConfig(Config.empty()).build();

  private final SparkConf conf =
      new SparkConf(false)
          .set("spark.app.name", "job")
          .set("spark.app.id", "spark-1")
          .set("spark.master", "k8s://https://127.0.0.1:1")
          .set("spark.kubernetes.container.image", "image")
          .set("spark.kubernetes.driver.podTemplateFile", TEMPLATE.toString())
          .set("spark.kubernetes.executor.podTemplateFile", TEMPLATE.toString());

  @AfterAll
  static void close() {
    CLIENT.close();
  }

  @Test
  void theDriverMayReadTheKeystoreAndNobodyElse() {
    var driver =
        KubernetesConf.createDriverConf(
            conf,
            "spark-1",
            new PythonMainAppResource("local:///opt/app/job.py"),
            "org.apache.spark.deploy.PythonRunner",
            new String[0],
            Option.empty());
    check(new KubernetesDriverBuilder().buildFromFeatures(driver, CLIENT).pod());
  }

  @Test
  void soMayExecutors() {
    conf.set("spark.driver.host", "driver").set("spark.driver.port", "7078");
    var executor = KubernetesConf.createExecutorConf(conf, "1", "spark-1", Option.empty(), 0);
    var security = new SecurityManager(conf, Option.empty(), package$.MODULE$.AUTH_SECRET_FILE());
    var profile = ResourceProfile$.MODULE$.getOrCreateDefaultProfile(conf);
    check(
        new KubernetesExecutorBuilder()
            .buildFromFeatures(executor, security, CLIENT, profile)
            .pod());
  }

  private static void check(SparkPod made) {
    PodSpec spec = made.pod().getSpec();
    assertEquals(185L, spec.getSecurityContext().getRunAsUser());
    assertEquals(185L, spec.getSecurityContext().getFsGroup());
    Volume volume = only(spec.getVolumes(), Volume::getName);
    assertEquals("lake-keystore", volume.getSecret().getSecretName());
    assertEquals(0400, volume.getSecret().getDefaultMode());
    VolumeMount mount = only(made.container().getVolumeMounts(), VolumeMount::getName);
    assertEquals("/etc/lake", mount.getMountPath());
    assertTrue(mount.getReadOnly());
    assertEquals("image", made.container().getImage(), "it is the container that Spark runs in");
  }

  private static <T> T only(List<T> all, Function<T, String> name) {
    List<T> named = all.stream().filter(one -> name.apply(one).equals("lake-keystore")).toList();
    assertEquals(1, named.size());
    return named.get(0);
  }
}
