// The GIL, released while loops run, also when the interpreter ends meanwhile.
#pragma once

#include <Python.h>

namespace klsa {

// Before Python 3.14, a daemon thread that asks for the GIL of an interpreter that has ended is
// unwound, which C++ answers by aborting the process. Such threads wait here for the process to end.
class WithoutGil {
  public:
    WithoutGil();
    WithoutGil(const WithoutGil&) = delete;
    WithoutGil& operator=(const WithoutGil&) = delete;
    ~WithoutGil();

    // Let no other thread return from now on, once those that ask for the GIL have it.
    static void end();

  private:
    PyThreadState* state_;
};

}  // namespace klsa
