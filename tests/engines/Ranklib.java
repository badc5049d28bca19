import ciir.umass.edu.learning.SparseDataPoint;
import ciir.umass.edu.learning.Ranker;
import ciir.umass.edu.learning.RankerFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Score the rows of a folder by every model in it. */
public class Ranklib {
  public static void main(String[] args) throws Exception {
    System.out.println("ready");
    Path folder = Path.of(args[0]);
    List<String> rows = Files.readAllLines(folder.resolve("rows"));
    try (DirectoryStream<Path> models = Files.newDirectoryStream(folder, "*.model")) {
      for (Path model : models) {
        Ranker ranker = new RankerFactory().loadRankerFromString(Files.readString(model));
        List<String> scores = new ArrayList<>();
        for (String row : rows) scores.add(Double.toString(ranker.eval(new SparseDataPoint(row))));
        Files.write(Path.of(model.toString().replace(".model", ".scores")), scores);
      }
    }
    System.out.println("done");
    while (System.in.read() >= 0) {}
  }
}
