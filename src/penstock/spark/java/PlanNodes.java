package penstock;

import java.lang.reflect.Method;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Generator;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** Lists the nodes of an analyzed plan in one call: each call from Python costs a quarter of a millisecond. */
public class PlanNodes {
  private static final int TEXT = 200;

  /** Fields by U+001F, nodes by U+001E: what it is, its class, its name, its text in the SQL, its parent's class, more. */
  public static String of(Object plan) {
    StringBuilder out = new StringBuilder();
    plan((LogicalPlan) plan, out);
    return out.toString();
  }

  private static void plan(LogicalPlan node, StringBuilder out) {
    if (node instanceof Join) {
      put(out, "operator", node, "Join", "", ((Join) node).joinType().toString());
    } else {
      put(out, "operator", node, name(node), "", "");
    }
    if (node instanceof View) {
      CatalogTable table = ((View) node).desc();
      if (table.viewText().isDefined()) {
        put(out, "view", node, table.identifier().unquotedString(), "", table.viewText().get().toString());
      }
    } else if (node instanceof LogicalRelation) {
      relation((LogicalRelation) node, out);
    } else if (node.children().isEmpty()) {
      put(out, "leaf", node, name(node), "", "");
    }
    scala.collection.Iterator expressions = node.expressions().iterator();
    while (expressions.hasNext()) {
      expression((Expression) expressions.next(), "", false, out);
    }
    scala.collection.Iterator children = node.children().iterator();
    while (children.hasNext()) {
      plan((LogicalPlan) children.next(), out);
    }
  }

  private static void relation(LogicalRelation node, StringBuilder out) {
    if (!(node.relation() instanceof HadoopFsRelation)) {
      put(out, "leaf", node, node.relation().getClass().getName(), "", "");
      return;
    }
    HadoopFsRelation files = (HadoopFsRelation) node.relation();
    Object index = files.location();
    Object version = asked(index, "version");
    String format = files.fileFormat().getClass().getSimpleName();
    if (version != null && asked(index, "deltaLog") != null) {
      put(out, "delta", node, String.valueOf(asked(index, "path")), version.toString(), index.getClass().getName());
      return;
    }
    StringBuilder roots = new StringBuilder();
    scala.collection.Iterator paths = files.location().rootPaths().iterator();
    while (paths.hasNext()) {
      roots.append(roots.length() == 0 ? "" : "\n").append(paths.next());
    }
    put(out, "files", node, format, roots.toString(), "");
  }

  private static void expression(Expression node, String parent, boolean replaced, StringBuilder out) {
    String text = text(node);
    if (node instanceof AggregateExpression) {
      AggregateFunction function = ((AggregateExpression) node).aggregateFunction();
      boolean ordered = Boolean.TRUE.equals(asked(function, "orderingFilled"));
      put(out, ordered ? "ordered aggregate" : "aggregate", function, function.prettyName(), text, parent);
    } else if (node instanceof WindowExpression) {
      put(out, "window", ((WindowExpression) node).windowFunction(), "", text, parent);
    } else if (node instanceof Generator) {
      put(out, "generator", node, node.prettyName(), text, parent);
    } else if (node instanceof PlanExpression) {
      put(out, "subquery", node, "", text, parent);
    }
    if (node instanceof UserDefinedExpression) {
      put(out, "user", node, ((UserDefinedExpression) node).name(), text, parent);
    } else if (node instanceof AttributeReference) {
      if (((AttributeReference) node).metadata().contains("__metadata_col")) {
        put(out, "metadata", node, ((AttributeReference) node).name(), text, parent);
      }
    } else {
      boolean own = !(node instanceof PlanExpression) && !node.deterministic();
      scala.collection.Iterator below = node.children().iterator();
      while (own && below.hasNext()) {
        own = ((Expression) below.next()).deterministic();
      }
      put(out, own ? "random" : replaced ? "replacement" : "expression", node, node.prettyName(), text, parent);
    }
    if (node instanceof PlanExpression && ((PlanExpression) node).plan() instanceof LogicalPlan) {
      plan((LogicalPlan) ((PlanExpression) node).plan(), out);
    }
    boolean below = replaced || node instanceof RuntimeReplaceable;
    String own = node instanceof AggregateExpression || node instanceof AggregateFunction ? parent : name(node);
    scala.collection.Iterator children = node.children().iterator();
    while (children.hasNext()) {
      expression((Expression) children.next(), own, below, out);
    }
  }

  private static String name(Object node) {
    String name = node.getClass().getName();
    return name.substring(name.lastIndexOf('.') + 1);
  }

  private static String text(Expression node) {
    Origin origin = node.origin();
    if (origin.sqlText().isEmpty() || origin.startIndex().isEmpty() || origin.stopIndex().isEmpty()) {
      return "";
    }
    String all = origin.sqlText().get().toString();
    int start = ((Integer) origin.startIndex().get()).intValue();
    int stop = Math.min(((Integer) origin.stopIndex().get()).intValue() + 1, Math.min(all.length(), start + TEXT));
    return start >= 0 && start < stop ? all.substring(start, stop) : "";
  }

  /** The result of a method without parameters; null if there is none. Delta's classes are not known here. */
  private static Object asked(Object object, String method) {
    try {
      Method found = object.getClass().getMethod(method, new Class[0]);
      found.setAccessible(true);
      return found.invoke(object, new Object[0]);
    } catch (Exception error) {
      return null;
    }
  }

  private static void put(StringBuilder out, String kind, Object node, String name, String text, String more) {
    String[] fields = new String[] {kind, node.getClass().getName(), name, text, more};
    for (int i = 0; i < fields.length; i++) {
      String field = fields[i] == null ? "" : fields[i];
      out.append(i == 0 ? "" : "\u001f").append(field.replace('\u001f', ' ').replace('\u001e', ' '));
    }
    out.append("\u001e");
  }
}
