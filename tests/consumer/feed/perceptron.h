// A trainer that does not depend on stoker: one hidden layer, plain gradient descent.
#pragma once

#include <cstdint>
#include <vector>

class Perceptron {
 public:
  Perceptron(int inputs, int hidden, int classes);
  // Trains one step on `rows` rows of (inputs) u8; rows of weight 0 are ignored. Returns the
  // weighted sum of the rows' losses.
  double train(const uint8_t* images, const int32_t* labels, const float* weights, int rows,
               float learning_rate);
  int predict(const uint8_t* image);

 private:
  void forward(const uint8_t* image);
  double backward(int label, float scale);

  const int inputs_, hidden_, classes_;
  std::vector<float> in_weights_, out_weights_;  // (hidden, inputs), (classes, hidden)
  std::vector<float> input_, active_, scores_, error_;
};
