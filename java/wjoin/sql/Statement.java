package wjoin.sql;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.execution.command.LeafRunnableCommand;
import org.apache.spark.sql.types.StructType;
import scala.Enumeration;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A statement of wjoin that changes something: run once, when Spark runs the command. */
public final class Statement extends LogicalPlan implements LeafRunnableCommand {
  private static final long serialVersionUID = 1;

  private final String text;
  private final transient Map<String, Object> parameters;
  private final Seq<Attribute> output;

  Statement(String text, Map<String, Object> parameters, StructType schema) {
    this(text, parameters, toAttributes(schema));
  }

  /** By which Spark copies a plan. */
  public Statement(String text, Map<String, Object> parameters, Seq<Attribute> output) {
    this.text = text;
    this.parameters = parameters;
    this.output = output;
  }

  @SuppressWarnings("unchecked")
  private static Seq<Attribute> toAttributes(StructType schema) {
    return (Seq<Attribute>) (Seq<?>) DataTypeUtils.toAttributes(schema);
  }

  @Override
  public Seq<Attribute> output() {
    return output;
  }

  /** As Spark 4.0 to 4.2 have it. */
  public Seq<Row> run(org.apache.spark.sql.classic.SparkSession session) {
    return run((SparkSession) session);
  }

  @Override
  public Seq<Row> run(SparkSession session) {
    try {
      List<Row> rows = Planner.run(session, text, parameters);
      return CollectionConverters.asScala(rows).toSeq();
    } catch (Refused refused) {
      throw Statement.<RuntimeException>unchecked(refused);
    }
  }

  /** Return an exception as one that Java does not check: Scala's methods declare none. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> E unchecked(Throwable refused) throws E {
    throw (E) refused;
  }

  @Override
  public Seq<LogicalPlan> children() {
    return CollectionConverters.asScala(List.<LogicalPlan>of()).toSeq();
  }

  @Override
  public LogicalPlan mapChildren(Function1<LogicalPlan, LogicalPlan> function) {
    return this;
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return this;
  }

  @Override
  public Seq<Enumeration.Value> nodePatterns() {
    return CollectionConverters.asScala(List.of(TreePattern.COMMAND())).toSeq();
  }

  // What Scala would make for the traits.

  @Override
  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      Seq<Enumeration.Value> patterns) {
    // They are those of every command.
  }

  @Override
  public int productArity() {
    return 3;
  }

  @Override
  public Object productElement(int place) {
    return List.of(text, parameters, output).get(place);
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Statement;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Statement
        && text.equals(((Statement) other).text)
        && parameters.equals(((Statement) other).parameters)
        && output.equals(((Statement) other).output);
  }

  @Override
  public int hashCode() {
    return text.hashCode();
  }
}
