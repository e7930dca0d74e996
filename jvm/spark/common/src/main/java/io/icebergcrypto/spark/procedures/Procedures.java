package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.spark.call.Procedure;
import io.icebergcrypto.spark.operations.Operations;
import io.icebergcrypto.spark.operations.Target;
import java.util.Locale;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;

/** The procedures of a catalog: this project's own, and Iceberg's with what this project adds. */
public final class Procedures {
  private Procedures() {}

  /**
   * Loads a procedure of this project.
   *
   * @param catalog the catalog that the procedure is called in
   * @param encrypted the encrypting Iceberg catalog behind it
   * @return null if this project has no procedure of this name
   */
  public static Procedure own(Identifier ident, TableCatalog catalog, EncryptedCatalog encrypted) {
    boolean own = ident.namespace().length == 1 && isOwn(ident.namespace()[0], ident.name());
    return own
        ? new OperationProcedure(Operations.procedure(ident.name()), Target.in(catalog, encrypted))
        : null;
  }

  /** Whether this project has a procedure of this name in this namespace. */
  public static boolean isOwn(String namespace, String name) {
    return namespace.equals("system") && Operations.procedure(name) != null;
  }

  /** A procedure of Iceberg's, guarded or replaced where that is needed. */
  public static Procedure guard(
      Procedure procedure, TableCatalog catalog, EncryptedCatalog encrypted) {
    String name = procedure.name().toLowerCase(Locale.ROOT);
    if (name.equals(RewriteTablePath.NAME)) {
      return new RewriteTablePath(procedure, catalog, encrypted);
    } else if (name.equals(RemoveOrphanFiles.NAME)) {
      return new RemoveOrphanFiles(procedure, catalog, encrypted);
    }

    if (GuardedProcedure.guards(name)) {
      return new GuardedProcedure(procedure, catalog, encrypted);
    }

    return IcebergProcedure.takesTable(procedure)
        ? new IcebergProcedure(procedure, catalog, encrypted)
        : procedure;
  }
}
