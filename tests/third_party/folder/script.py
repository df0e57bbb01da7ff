"""Two runs and their comparison, from Python."""

import harness

common = {"judge": "acme-strict", "data": "sample", "quiet": True, "output_path": "scripted"}
wide = harness.evaluate("acme_borrowed", model="acme-clerk:shelves=murder,sea,garden", **common)
narrow = harness.evaluate(
    ["acme_borrowed"],
    model="acme-clerk",
    model_args={"shelves": "garden", "model": "narrow"},
    name="narrow",
    tag={"week": 7},
    **common,
)
print(wide.status, wide.exit_code, round(wide.summaries[0].metrics["kept"].value, 4))
print(harness.load(narrow.folder).summaries[0].metrics["kept"].missing)
print(sorted({sample.stage for sample in wide.samples()}))
print(len(wide.to_pandas()), [sample.value for sample in wide.samples(stage="next")][:1])
[difference] = harness.compare([narrow, wide], metric=["kept"]).comparisons[0].differences
print(difference.metric, round(difference.value, 4))
