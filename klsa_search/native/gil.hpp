// The GIL, released while loops run, also when the interpreter ends meanwhile.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace klsa {

// Before Python 3.14, a daemon thread that asks for the GIL of an interpreter that has ended is
// unwound, which C++ answers by aborting the process. Such threads wait here for the process to end.
class WithoutGil {
  public:
    WithoutGil() : state_(PyEval_SaveThread()) {}
    WithoutGil(const WithoutGil&) = delete;
    WithoutGil& operator=(const WithoutGil&) = delete;

    ~WithoutGil() {
        returning_++;
        if (ending_ && std::this_thread::get_id() != ending_thread_) {
            returning_--;
            for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
        }
        PyEval_RestoreThread(state_);
        returning_--;
    }

    // Let no other thread return from now on, once those that ask for the GIL have it.
    static void end() {
        ending_thread_ = std::this_thread::get_id();
        ending_ = true;
        PyThreadState* state = PyEval_SaveThread();
        while (returning_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        PyEval_RestoreThread(state);
    }

  private:
    PyThreadState* state_;
    static inline std::atomic<int> returning_{0};
    static inline std::atomic<bool> ending_{false};
    static inline std::thread::id ending_thread_;
};

}  // namespace klsa
