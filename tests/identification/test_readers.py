import gzip
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from mechsmith.identification.readers import ColumnSpec, CsvFormat, read_record
from mechsmith.identification.record import Record
from mechsmith.identification.record_checks import RecordError, RecordWarning

TIME = ColumnSpec("t", "ms", "s")
ANGLE = ColumnSpec("angle", "deg", "rad")


def _csv(folder: Path, text: str) -> Path:
    path = folder / "log.csv"
    path.write_text(text, encoding="utf-8")
    return path


def _read(path: Path, **columns: ColumnSpec) -> Record:
    return read_record(path, time=TIME, columns=columns or {"q": ANGLE})


def test_units_and_gains(tmp_path: Path) -> None:
    path = _csv(tmp_path, "t,angle,speed,i,u\n0,0,60,1000,1\n1,90,-60,-500,2\n2,180,0,0,3\n")
    record = _read(
        path,
        q=ANGLE,
        v=ColumnSpec("speed", "rpm", "rad/s"),
        tau=ColumnSpec("i", "mA", "N*m", gain=0.5, gain_unit="N*m/A", offset=20.0),
        force=ColumnSpec("u", "V", "N", gain=35.0, gain_unit="N/V"),
    )
    # a few roundings of factors and products each
    np.testing.assert_allclose(record.time, [0, 1e-3, 2e-3], rtol=1e-15)
    np.testing.assert_allclose(record["q"], [0, np.pi / 2, np.pi], rtol=1e-15)
    np.testing.assert_allclose(record["v"], [2 * np.pi, -2 * np.pi, 0], rtol=1e-15)
    # the offset of 20 is in mA N*m/A, that is 0.02 N*m
    np.testing.assert_allclose(record["tau"], [0.52, -0.23, 0.02], rtol=1e-15)
    np.testing.assert_allclose(record["force"], [35, 70, 105], rtol=1e-15)
    assert dict(record.units) == {"q": "rad", "v": "rad/s", "tau": "N*m", "force": "N"}
    assert "tau: i in mA, gain 0.5 N*m/A, offset 20.0, to N*m" in record.provenance


def test_units_that_do_not_fit_name_column_units_and_dimensions(tmp_path: Path) -> None:
    path = _csv(tmp_path, "t,angle\n0,0\n1,1\n")
    with pytest.raises(
        RecordError, match=r"column 'tau' \(in the file 'angle'\).*'V'.*\[current\].*'N\*m'.*\[mass\]"
    ):
        _read(path, tau=ColumnSpec("angle", "V", "N*m"))
    with pytest.raises(RecordError, match="which angle is meant"):
        _read(path, q=ColumnSpec("angle", "", "rad"))


def test_rows_are_lines_of_the_file(tmp_path: Path) -> None:
    path = _csv(tmp_path, "# a log\nt,angle\n0,1\n\n1,2\n1,3\n2,nan\n3,\n")
    with pytest.raises(RecordError) as caught:
        _read(path)
    message = str(caught.value)
    assert "3 error(s)" not in message  # lines 7 and 8 are one run
    assert "'time' (in the file 't'), line 6: the time 0.001 s is given 2 times" in message
    assert "'q' (in the file 'angle'), line 7 to line 8: nan" in message


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("t,angle\n0,1\n1,x\n", r"line 3, column 'angle': 'x' is not a number"),
        ("t,angle\n0,1\n1\n", r"line 3: 1 fields, expected are 2"),
        ("t,other\n0,1\n", r"no column 'angle'; there are \['other', 't'\]"),
        ("t,angle,angle\n0,1,2\n", r"2 columns are called 'angle'"),
        ("", r"no rows"),
        ("t,angle\n0,1\n", r"1 sample\(s\)"),
        ("t,angle\n", r"0 sample\(s\)"),
        ("t,angle\n0,1\n2,1\n1,1\n", r"line 4: the time goes back"),
        ("t,angle\n0,1\n2,inf\n", r"line 3: inf"),
    ],
)
def test_broken_csv(tmp_path: Path, text: str, pattern: str) -> None:
    with pytest.raises(RecordError, match=pattern):
        _read(_csv(tmp_path, text))


def test_jitter_and_gaps_are_warnings_on_reading(tmp_path: Path) -> None:
    path = _csv(tmp_path, "t,angle\n0,1\n10,1\n20,1\n50,1\n61,1\n70,1\n80,1\n")
    with pytest.warns(RecordWarning) as caught:
        record = _read(path)
    messages = [str(warning.message) for warning in caught]
    assert len(record) == 7
    assert "line 5: a gap of 0.03 s" in messages[0]
    assert "10 % off the median period" in messages[1]
    assert caught[0].filename == __file__  # the caller's line is what a user wants to see


def test_degrees_declared_as_radians(tmp_path: Path) -> None:
    path = _csv(tmp_path, "t,angle\n0,10\n1,20\n2,150\n")
    with pytest.warns(RecordWarning, match=r"'q'.*line 4.*degrees declared as rad"):
        _read(path, q=ColumnSpec("angle", "rad", "rad"))
    with pytest.raises(RecordError, match=r"'q'.*line 2: 10 rad exceeds 3.2 rad"):
        _read(path, q=ColumnSpec("angle", "rad", "rad", largest=3.2))


def test_milliampere_declared_as_ampere(tmp_path: Path) -> None:
    path = _csv(tmp_path, "t,i\n0,10\n1,400\n2,150\n")
    with pytest.raises(RecordError, match=r"'i', line 3: 400 A exceeds 20 A"):
        _read(path, i=ColumnSpec("i", "A", "A", largest=20.0))
    assert _read(path, i=ColumnSpec("i", "mA", "A", largest=20.0))["i"][1] == pytest.approx(0.4, rel=1e-15)


def test_european_csv_without_header_packed(tmp_path: Path) -> None:
    path = tmp_path / "log.csv.gz"
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.write("1,5;-2,25\n2,5;1e3\n")
    record = read_record(
        path,
        time=None,
        sample_period=0.5,
        columns={"x": ColumnSpec("2", "mm", "m")},
        csv_format=CsvFormat(delimiter=";", decimal=",", header=False),
    )
    # one rounding of the factor, one of the product
    np.testing.assert_allclose(record["x"], [-2.25e-3, 1.0], rtol=4e-16)
    np.testing.assert_array_equal(record.time, [0.0, 0.5])
    assert "time: from a sample period of 0.5 s" in record.provenance


def test_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("t,angle\n0,0\n1,1\n", encoding="utf-8-sig")
    assert len(_read(path)) == 2


def test_mat_with_matrix_structure_and_column_vectors(tmp_path: Path) -> None:
    path = tmp_path / "log.mat"
    matrix = np.arange(6.0).reshape(3, 2)
    savemat(
        path,
        {"t": np.array([[0.0], [1.0], [2.0]]), "q": matrix, "log": {"u": [1.0, 2.0, 3.0]}, "name": "axis"},
    )
    record = _read(path, a=ColumnSpec("q[1]", "m", "m"), u=ColumnSpec("log.u", "V", "V"))
    np.testing.assert_array_equal(record["a"], [1, 3, 5])
    np.testing.assert_array_equal(record["u"], [1, 2, 3])
    for source, pattern in [
        ("q", r"shape \(3, 2\); name one of its columns"),
        ("q[2]", "does not name a column"),
        ("log.x", "no column 'log.x'"),
        ("name", "allowed are real numbers"),
    ]:
        with pytest.raises(RecordError, match=pattern):
            _read(path, a=ColumnSpec(source, "m", "m"))


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "log.npz"
    np.savez(path, t=np.arange(4), angle=np.array([0, 1, np.nan, 3]), short=np.zeros(3), ok=np.arange(4))
    assert len(_read(path, q=ColumnSpec("ok", "deg", "rad"))) == 4
    with pytest.raises(RecordError, match=r"'q' \(in the file 'angle'\), sample 2 \(from 0\): nan"):
        _read(path)
    with pytest.raises(RecordError, match="differ in length, samples: 't' 4, 'short' 3"):
        _read(path, q=ColumnSpec("short", "deg", "rad"))
    np.savez(path, t=np.array([{}], dtype=object))
    with pytest.raises(RecordError, match="cannot be read as arrays of numbers"):
        _read(path)


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "log.parquet"
    parquet.write_table(
        pyarrow.table({"t": [0, 1, 2], "angle": [0.0, 90.0, 180.0], "hole": [1.0, None, 2.0]}), path
    )
    # one rounding of the factor, one of the product
    np.testing.assert_allclose(_read(path)["q"], [0, np.pi / 2, np.pi], rtol=4e-16)
    with pytest.raises(RecordError, match=r"sample 1 \(from 0\): nan"):
        _read(path, q=ColumnSpec("hole", "deg", "rad"))
    with pytest.raises(RecordError, match="no column 'x'"):
        _read(path, q=ColumnSpec("x", "deg", "rad"))
    path.write_text("no parquet")
    with pytest.raises(RecordError, match="no Parquet file"):
        _read(path)


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(RecordError, match=r"pip install mechsmith\[parquet\]"):
        _read(path)


def test_arguments(tmp_path: Path) -> None:
    path = _csv(tmp_path, "t,angle\n0,0\n1,1\n")
    with pytest.raises(RecordError, match=r"either time or sample_period"):
        read_record(path, time=None, columns={"q": ANGLE})
    with pytest.raises(RecordError, match=r"either time or sample_period"):
        read_record(path, time=TIME, columns={"q": ANGLE}, sample_period=1.0)
    with pytest.raises(RecordError, match=r"sample_period is 0"):
        read_record(path, time=None, columns={"q": ANGLE}, sample_period=0.0)
    with pytest.raises(RecordError, match=r"none of them 'time'"):
        read_record(path, time=TIME, columns={"time": ANGLE})
    with pytest.raises(RecordError, match=r"model_unit of time is 'rad'"):
        read_record(path, time=ANGLE, columns={"q": ANGLE})
    with pytest.raises(RecordError, match=r"allowed are .csv"):
        _read(tmp_path / "log.xlsx")
    with pytest.raises(RecordError, match=r"there is no file"):
        _read(tmp_path / "nothing.csv")
    (tmp_path / "bad.mat").write_bytes(b"no MATLAB file at all" * 20)
    with pytest.raises(RecordError, match=r"no MATLAB file"):
        _read(tmp_path / "bad.mat")
