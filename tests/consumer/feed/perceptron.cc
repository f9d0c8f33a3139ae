#include "perceptron.h"

#include <algorithm>
#include <cmath>
#include <random>

Perceptron::Perceptron(int inputs, int hidden, int classes)
    : inputs_(inputs),
      hidden_(hidden),
      classes_(classes),
      in_weights_(static_cast<size_t>(hidden) * inputs),
      out_weights_(static_cast<size_t>(classes) * hidden),
      input_(inputs),
      active_(hidden),
      scores_(classes),
      error_(hidden) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float& w : in_weights_) w = normal(random) * std::sqrt(2.0f / static_cast<float>(inputs));
  for (float& w : out_weights_) w = normal(random) * std::sqrt(1.0f / static_cast<float>(hidden));
}

void Perceptron::forward(const uint8_t* image) {
  for (int i = 0; i < inputs_; ++i) input_[i] = (static_cast<float>(image[i]) - 128.0f) / 64.0f;
  for (int h = 0; h < hidden_; ++h) {
    const float* weights = in_weights_.data() + static_cast<size_t>(h) * inputs_;
    float sum = 0;
    for (int i = 0; i < inputs_; ++i) sum += weights[i] * input_[i];
    active_[h] = std::max(sum, 0.0f);
  }
  for (int c = 0; c < classes_; ++c) {
    scores_[c] = 0;
    for (int h = 0; h < hidden_; ++h) scores_[c] += out_weights_[c * hidden_ + h] * active_[h];
  }
}

// Computes softmax and cross-entropy, and updates the weights at once.
double Perceptron::backward(int label, float scale) {
  const float highest = *std::max_element(scores_.begin(), scores_.end());
  float sum = 0;
  for (float& score : scores_) sum += score = std::exp(score - highest);
  const double loss = -std::log(std::max(scores_[label] / sum, 1e-12f));
  std::fill(error_.begin(), error_.end(), 0.0f);
  for (int c = 0; c < classes_; ++c) {
    const float gradient = scale * (scores_[c] / sum - (c == label ? 1.0f : 0.0f));
    for (int h = 0; h < hidden_; ++h) {
      error_[h] += gradient * out_weights_[c * hidden_ + h];
      out_weights_[c * hidden_ + h] -= gradient * active_[h];
    }
  }
  for (int h = 0; h < hidden_; ++h) {
    if (active_[h] <= 0) continue;
    float* weights = in_weights_.data() + static_cast<size_t>(h) * inputs_;
    for (int i = 0; i < inputs_; ++i) weights[i] -= error_[h] * input_[i];
  }
  return loss;
}

double Perceptron::train(const uint8_t* images, const int32_t* labels, const float* weights,
                         int rows, float learning_rate) {
  double loss = 0;
  for (int row = 0; row < rows; ++row) {
    if (weights[row] == 0) continue;
    forward(images + static_cast<size_t>(row) * inputs_);
    loss += weights[row] * backward(labels[row], learning_rate * weights[row]);
  }
  return loss;
}

int Perceptron::predict(const uint8_t* image) {
  forward(image);
  return static_cast<int>(std::max_element(scores_.begin(), scores_.end()) - scores_.begin());
}
