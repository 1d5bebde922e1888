"""More than two classes: K scores per sample, and the class of the highest is predicted.

The scores of a class are normal; their means and covariances are matrices that follow from the same
sums over the spectrum as the one score of two classes. To read in this order:

- `label_functions`: the matrices T of the class means, beside the scalar sums D and T;
- `square_classes`: ridge regression on one-hot targets, in closed form;
- `score_points`, `proximal_scores`: averages over the scores of training samples of softmax;
- `softmax_matrices`, `softmax_fits`: multinomial logistic regression, a κ for each direction of
  scores; `softmax_classes`: the same of classes that are all alike, which three numbers describe;
- `class_fluctuations`: what matters at finite size, where each class has few samples;
- `score_law`: the law of scores, and the rates of errors that follow;
- `score_rates`: which of K normal scores is the highest; `orthants`: its integrals beyond three
  classes, whose errors are estimated;
- `one_vs_rest`, `learner_pairs`, `one_vs_rest_fits`: binary fits of each class against all others;
- `field_points`, `field_rates`, `field_predictions`: classes that are the largest of K fields;
- `stages`: the λ on the way to a solution that the usual start does not reach;
- `class_separability`: where a fit without a penalty ceases to exist;
- `class_predictions`: points to every predicted quantity; `best_class_lambda`: the best λ.
"""
