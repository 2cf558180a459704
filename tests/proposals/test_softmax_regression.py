"""Multinomial regression: the optimum by its gradient, closed forms, equal bits."""

import numpy as np
import pytest

from actionspan.proposals.classifier_training import fit_softmax
from actionspan.proposals.segment_classifier import softmax_scores


def problem(rows=60, columns=5, classes=3):
    random = np.random.default_rng(1)
    features = random.normal(size=(rows, columns))
    named = (features[:, :classes] + random.normal(size=(rows, classes))).argmax(axis=1)
    return features, named.astype(np.int64), classes


@pytest.mark.parametrize("penalty", [0.01, 1.0])
def test_the_gradient_is_zero(penalty):
    features, classes, count = problem()
    fitted = fit_softmax(features, classes, count, penalty)
    # the gradient of the mean cross-entropy: (scores - truth) · inputs
    error = softmax_scores(features, fitted) - np.eye(count)[classes]
    weights = error.T @ features / len(features) + penalty * fitted[:, :-1]
    assert abs(weights).max() < 2e-5
    assert abs(error.mean(axis=0)).max() < 2e-5


def test_without_features_the_scores_are_the_shares_of_the_classes():
    classes = np.array([0] * 5 + [1] * 3 + [2] * 2)
    fitted = fit_softmax(np.zeros((10, 2)), classes, 3, 0.1)
    np.testing.assert_allclose(
        softmax_scores(np.zeros((1, 2)), fitted), [[0.5, 0.3, 0.2]], atol=1e-4
    )


def test_a_stronger_penalty_gives_smaller_coefficients_and_another_start_the_same():
    features, classes, count = problem()
    weak, strong = (fit_softmax(features, classes, count, penalty) for penalty in (0.01, 1.0))
    assert (strong[:, :-1] ** 2).sum() < (weak[:, :-1] ** 2).sum()
    again = fit_softmax(features, classes, count, 0.01, strong)
    np.testing.assert_allclose(
        softmax_scores(features, again), softmax_scores(features, weak), atol=1e-3
    )


def test_the_same_input_gives_the_same_bits():
    features, classes, count = problem()
    first, second = (fit_softmax(features, classes, count, 0.1) for _ in range(2))
    assert np.array_equal(first, second)


def test_scores_add_up_to_1_even_where_logits_are_huge():
    coefficients = np.array([[1000.0, 0.0], [-1000.0, 0.0]])
    np.testing.assert_allclose(
        softmax_scores(np.array([[2.0], [0.0]]), coefficients), [[1, 0], [0.5, 0.5]]
    )
    assert softmax_scores(np.ones((3, 1)), np.zeros((1, 2))).tolist() == [[1.0]] * 3
    assert softmax_scores(np.ones((3, 1)), np.zeros((0, 2))).shape == (3, 0)
