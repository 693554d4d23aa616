package wjoin.columns;

import java.util.List;
import java.util.Objects;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Some columns of its child, in blocks: each row has one value, the bytes of an Arrow stream.
 *
 * <p>The columns are those of the projection {@code columns}; without columns the child gives rows, and these
 * are what is in the blocks.
 */
public final class BlocksExec extends SparkPlan {
  /** The name of the one column; executor/spark/column_blocks.py has the same. */
  static final String COLUMN = "__wjoin_columns";

  private static final long serialVersionUID = 1L;

  private final Seq<NamedExpression> columns;
  private final Seq<Attribute> output;
  private final SparkPlan child;

  /** Spark itself makes nodes by their constructor, with the elements of the product. */
  public BlocksExec(Seq<NamedExpression> columns, Seq<Attribute> output, SparkPlan child) {
    this.columns = columns;
    this.output = output;
    this.child = child;
  }

  static BlocksExec of(List<NamedExpression> columns, SparkPlan child) {
    Attribute block =
        new AttributeReference(
            COLUMN,
            DataTypes.BinaryType,
            false,
            Metadata.empty(),
            NamedExpression.newExprId(),
            CollectionConverters.asScala(List.<String>of()).toSeq());
    return new BlocksExec(
        CollectionConverters.asScala(columns).toSeq(),
        CollectionConverters.asScala(List.of(block)).toSeq(),
        child);
  }

  @Override
  public Seq<Attribute> output() {
    return output;
  }

  @Override
  public AttributeSet producedAttributes() {
    return outputSet();
  }

  @Override
  public Seq<SparkPlan> children() {
    return CollectionConverters.asScala(List.of(child)).toSeq();
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return new BlocksExec(columns, output, children.head());
  }

  @Override
  public RDD<InternalRow> doExecute() {
    Layout layout = Layout.of(columns, child.output(), conf());
    if (child.supportsColumnar()) {
      FlatMapFunction<java.util.Iterator<ColumnarBatch>, InternalRow> copied =
          batches -> new CopiedBlocks(layout, batches);
      return child.executeColumnar().toJavaRDD().mapPartitions(copied).rdd();
    }
    FlatMapFunction<java.util.Iterator<InternalRow>, InternalRow> written =
        rows -> new WrittenBlocks(layout, rows);
    return child.execute().toJavaRDD().mapPartitions(written).rdd();
  }

  @Override
  public int productArity() {
    return 3;
  }

  @Override
  public Object productElement(int n) {
    return switch (n) {
      case 0 -> columns;
      case 1 -> output;
      case 2 -> child;
      default -> throw new IndexOutOfBoundsException(n);
    };
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof BlocksExec;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof BlocksExec same
        && columns.equals(same.columns)
        && output.equals(same.output)
        && child.equals(same.child);
  }

  @Override
  public int hashCode() {
    return Objects.hash(columns, output, child);
  }
}
