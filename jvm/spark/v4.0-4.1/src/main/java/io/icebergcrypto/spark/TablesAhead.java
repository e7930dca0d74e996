package io.icebergcrypto.spark;

import io.icebergcrypto.kms.call.AsCaller;
import io.icebergcrypto.spark.call.ScalaLists;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.iceberg.CachingCatalog;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.runtime.BoxedUnit;

/**
 * Loads the tables of a statement side by side. Spark's analyzer loads one after another, and where
 * metadata is signed, each load waits for the KMS. This looks at a plan before the analyzer
 * resolves its relations, and begins to load them into the catalog's cache, as the analyzer would
 * and with all checks of a load. The analyzer finds them there, waits for those under way, and
 * meets each error itself.
 *
 * <p>Spark finds this class as a service, without a setting.
 */
public final class TablesAhead implements SparkSessionExtensionsProvider {
  private static final Logger LOG = LoggerFactory.getLogger(TablesAhead.class);

  /** Spark makes one. */
  public TablesAhead() {}

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectHintResolutionRule(BeforeAnalysis::new); // Spark resolves hints first
    return BoxedUnit.UNIT;
  }

  /** A table, and the catalog that has it in its cache once it is loaded. */
  private record Named(CachingCatalog catalog, Identifier name) {}

  /** Changes no plan. */
  private static final class BeforeAnalysis extends Rule<LogicalPlan> {
    private final SparkSession spark;

    private BeforeAnalysis(SparkSession spark) {
      this.spark = spark;
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      if (!plan.analyzed() && plan.containsPattern(TreePattern.UNRESOLVED_RELATION())) {
        try {
          Set<Named> tables = tables(plan);
          if (tables.size() > 1) { // one alone is loaded now in any case
            tables.forEach(table -> AsCaller.ahead(() -> load(table)));
          }
        } catch (RuntimeException | LinkageError e) {
          LOG.debug("Cannot load tables ahead", e);
        }
      }

      return plan;
    }

    private Set<Named> tables(LogicalPlan plan) {
      Set<Named> tables = new HashSet<>();
      addTables(plan, tables);
      ScalaLists.toJava(plan.subqueriesAll()).forEach(subquery -> addTables(subquery, tables));
      return tables;
    }

    private void addTables(LogicalPlan plan, Set<Named> tables) {
      plan.foreach(
          node -> {
            if (node instanceof UnresolvedRelation relation
                && !spark.sessionState().catalog().isTempView(relation.multipartIdentifier())) {
              add(ScalaLists.toJava(relation.multipartIdentifier()), tables);
            }

            return BoxedUnit.UNIT;
          });
    }

    /** A table by its name, as Spark understands it, if it is in one of our catalogs. */
    private void add(List<String> written, Set<Named> tables) {
      CatalogManager catalogs = spark.sessionState().catalogManager();
      List<String> name = expanded(written, catalogs);
      boolean inCatalog = name.size() > 1 && catalogs.isCatalogRegistered(name.get(0));
      CatalogPlugin plugin = inCatalog ? catalogs.catalog(name.get(0)) : catalogs.currentCatalog();
      if (plugin instanceof SparkCatalogBase ours
          && ours.icebergCatalog() instanceof CachingCatalog cached) {
        int last = name.size() - 1;
        String[] namespace = name.subList(inCatalog ? 1 : 0, last).toArray(String[]::new);
        tables.add(
            new Named(
                cached,
                Identifier.of(
                    last == 0 ? catalogs.currentNamespace() : namespace, name.get(last))));
      }
    }

    /** In a view's body, a name starts at the catalog and namespace that the view was made in. */
    private static List<String> expanded(List<String> name, CatalogManager catalogs) {
      List<String> ofView = ScalaLists.toJava(AnalysisContext.get().catalogAndNamespace());
      boolean inCatalog = name.size() > 1 && catalogs.isCatalogRegistered(name.get(0));
      if (ofView.isEmpty() || inCatalog) {
        return name;
      }

      List<String> expanded = new ArrayList<>(name.size() == 1 ? ofView : ofView.subList(0, 1));
      expanded.addAll(name);
      return expanded;
    }

    private static void load(Named table) {
      try {
        // its first use checks its metadata
        table.catalog.loadTable(Spark3Util.identifierToTableIdentifier(table.name)).schema();
      } catch (RuntimeException | LinkageError e) {
        LOG.debug("Cannot load {} ahead", table.name, e);
      }
    }
  }
}
