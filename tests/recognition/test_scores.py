"""How a classifier says that it was trained."""

from pathlib import Path

from actionspan.recognition.scores import training_words
from actionspan.recognition.settings import RecognitionSettings


def test_the_words_name_network_start_learners_and_data():
    settings = RecognitionSettings(epochs=3, learning_rate=0.0001)
    assert training_words(settings, 2, None, "the rendered demo set") == (
        "efficientnet_lite0 from public weights, adam at 0.0001, 2 learners, 3 epochs, batches of "
        "16 a learner at the start, on the rendered demo set"
    )
    scratch = RecognitionSettings(pretrained=False)
    assert "from random weights, adam at 0.001, 1 learner, " in training_words(scratch, 1, None, "")
    assert "from the weights a.pt, " in training_words(scratch, 1, Path("x/a.pt"), "")
