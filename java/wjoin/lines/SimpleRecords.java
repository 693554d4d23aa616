package wjoin.lines;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.JsonToStructs;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.json.JSONOptions;
import org.apache.spark.sql.execution.vectorized.MutableColumnarRow;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Spark's from_json, which itself reads only values that are not simple. */
public final class SimpleRecords extends Expression implements CodegenFallback, Serializable {
  private static final long serialVersionUID = 1L;

  private final JsonToStructs own;
  private transient JsonLine simple;
  private transient OnHeapColumnVector[] columns;
  private transient MutableColumnarRow row;

  /** Spark itself makes expressions by their constructor, with the elements of the product. */
  public SimpleRecords(JsonToStructs own) {
    this.own = own;
  }

  @Override
  public Object eval(InternalRow input) {
    UTF8String value = (UTF8String) own.child().eval(input);
    if (value == null) {
      return null;
    }
    if (simple == null) {
      prepare();
    }
    for (OnHeapColumnVector each : columns) {
      each.reset();
    }
    byte[] bytes = value.getBytes();
    return simple.put(bytes, bytes.length, columns, 0) ? row.copy() : own.nullSafeEval(value);
  }

  private void prepare() {
    // Spark refuses options and schemas at its first value.
    own.nullSafeEval(UTF8String.EMPTY_UTF8);
    StructType schema = (StructType) dataType();
    JSONOptions options =
        new JSONOptions(own.options(), own.timeZoneId().get(), SQLConf.get().columnNameOfCorruptRecord());
    columns = OnHeapColumnVector.allocateColumns(1, schema);
    row = new MutableColumnarRow(columns);
    simple = new JsonLine(schema, options.columnNameOfCorruptRecord(), options.zoneId());
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    return CodegenFallback.super.doGenCode(context, code);
  }

  @Override
  public DataType dataType() {
    return own.dataType();
  }

  @Override
  public boolean nullable() {
    return own.nullable();
  }

  @Override
  public String toString() {
    return own.toString();
  }

  @Override
  public Seq<Expression> children() {
    return CollectionConverters.asScala(List.<Expression>of(own)).toSeq();
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return new SimpleRecords((JsonToStructs) children.head());
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int n) {
    return own;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof SimpleRecords;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof SimpleRecords same && own.equals(same.own);
  }

  @Override
  public int hashCode() {
    return own.hashCode();
  }
}
