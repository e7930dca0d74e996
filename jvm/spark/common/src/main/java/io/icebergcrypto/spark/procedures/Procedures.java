package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.EngineCatalog;
import io.icebergcrypto.spark.call.Procedure;
import io.icebergcrypto.spark.operations.Operations;
import io.icebergcrypto.spark.operations.Target;
import java.util.Locale;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;

/** The procedures of a catalog: this project's own, and Iceberg's with what this project adds. */
public final class Procedures {
  private Procedures() {}

  /** Loads a procedure of Iceberg's. */
  @FunctionalInterface
  public interface Icebergs<E extends Exception> {
    /** Fails when Iceberg has no procedure of this name. */
    Procedure load() throws E;
  }

  /**
   * Loads a procedure: of this project, if it has one of this name, or of Iceberg.
   *
   * @param catalog the catalog that the procedure is called in
   */
  public static <C extends TableCatalog & EngineCatalog, E extends Exception> Procedure load(
      Identifier ident, C catalog, Icebergs<E> icebergs) throws E {
    EncryptedCatalog encrypted = catalog.encryptedCatalog();
    boolean own = ident.namespace().length == 1 && isOwn(ident.namespace()[0], ident.name());
    return own
        ? OperationProcedure.of(Operations.procedure(ident.name()), Target.in(catalog, encrypted))
        : guarded(icebergs.load(), catalog, encrypted);
  }

  /** Whether this project has a procedure of this name in this namespace. */
  public static boolean isOwn(String namespace, String name) {
    return namespace.equals("system") && Operations.procedure(name) != null;
  }

  /** A procedure of Iceberg's, guarded or replaced where that is needed. */
  private static Procedure guarded(
      Procedure procedure, TableCatalog catalog, EncryptedCatalog encrypted) {
    String name = procedure.name().toLowerCase(Locale.ROOT);
    if (name.equals(RewriteTablePath.NAME)) {
      return procedure.doing(new RewriteTablePath(procedure, catalog, encrypted)::call);
    } else if (name.equals(RemoveOrphanFiles.NAME)) {
      return procedure.doing(new RemoveOrphanFiles(procedure, catalog, encrypted)::call);
    } else if (GuardedProcedure.guards(name)) {
      return procedure.doing(new GuardedProcedure(procedure, catalog, encrypted)::call);
    }

    return IcebergProcedure.takesTable(procedure)
        ? procedure.doing(new IcebergProcedure(procedure, catalog, encrypted)::call)
        : procedure;
  }
}
